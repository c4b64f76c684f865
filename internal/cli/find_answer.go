package cli

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"strconv"
	"strings"
	"time"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/host"
	"carronade/internal/layout"
	"carronade/internal/report"
	"carronade/internal/report/export"
	"carronade/internal/store"
	"carronade/internal/verdict/find"
)

// A repeatedDocument are the answers of several searches as JSON.
type repeatedDocument struct {
	Schema string   `json:"schema"`
	ID     string   `json:"id"` // the label find of the trials and of the searches' reports
	Target string   `json:"target"`
	Limits []string `json:"limits"`
	*find.Repeated
}

// found stores the answers as reports, prints them and writes the requested files.
func (s *session) found(f *searching, o *outputs, a *find.Answer) error {
	if f.Interrupted && o.keep.store != nil {
		s.note("to go on: the same command with --resume %s", f.id)
	}
	if f.more.repeat > 1 {
		return s.foundSeveral(f, o, f.all(a))
	}
	d, err := f.reportOf(f.id, a, f.of)
	if err != nil {
		return err
	}
	var kept error
	if o.keep.store != nil && len(a.Trials) > 0 {
		kept = keepAnswer(o.keep.store, d)
	}
	return s.deliverAnswer(f, o, d, kept)
}

// reportOf makes the report of an answer, of which a report is a trial.
func (f *searching) reportOf(id string, a *find.Answer, of *report.Document) (*report.Document, error) {
	return report.SearchReport(&report.Searched{
		ID: id, Search: f.id, Limits: f.limitTexts(), Began: f.began, Ended: time.Now(), Options: f.Options, AtLeast: f.least,
		Answer: a, Of: of, Canceled: a.CutShort(),
	})
}

// reportOfSeveral makes the report of one of several searches, counted from 1. Its id follows from
// theirs: a search that is resumed replaces its report.
func (f *searching) reportOfSeveral(number int, a *find.Answer) (*report.Document, error) {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s-%d", f.id, number)
	of := *f.of
	of.Labels = maps.Clone(of.Labels)
	if of.Labels == nil {
		of.Labels = map[string]string{}
	}
	of.Labels[searchLabel] = strconv.Itoa(number)
	return f.reportOf(seriesID(h.Sum64()), a, &of)
}

// foundSeveral stores a report for each of several searches, and prints all of them together.
func (s *session) foundSeveral(f *searching, o *outputs, all *find.Repeated) error {
	for i, a := range all.Searches {
		d, err := f.reportOfSeveral(i+1, a)
		if err != nil {
			return err
		}
		if o.keep.store != nil && len(a.Trials) > 0 {
			s.reportStored(o.keep, d, keepAnswer(o.keep.store, d), !o.quiet)
		}
	}
	doc := repeatedDocument{Schema: report.SearchSchema, ID: f.id, Target: f.target, Limits: f.limitTexts(), Repeated: all}
	var problems []error
	if path := f.settings.Last("json-file"); path != "" {
		if err := cmdutil.WriteFile(path, func(w io.Writer) error { return cmdutil.WriteJSON(w, doc) }); err != nil {
			problems = append(problems, cannotWrite("--json-file", path, err, "give a file in a writable folder; carronade report list label.find="+f.id+" lists the reports in the store"))
		}
	}
	if err := s.printSeveral(f, o, &doc); err != nil {
		problems = append(problems, fmt.Errorf("writing the report: %w", err))
	}
	return outcomeOf(all.ExitCode(f.least), problems)
}

// printSeveral prints the answers of several searches.
func (s *session) printSeveral(f *searching, o *outputs, doc *repeatedDocument) error {
	if o.json {
		return cmdutil.WriteJSON(s.out, doc)
	}
	c := s.console()
	p := &layout.Page{Style: c.Style, MaxColumns: c.Columns}
	limits := strings.Join(doc.Limits, ", ")
	word, color := report.SearchWord(doc.ExitCode(f.least), f.least > 0)
	find.Head(p, color, word, doc.Headline(limits))
	p.Title("find " + f.target)
	doc.Details(p, limits)
	if o.keep.store != nil {
		p.Line("")
		p.Line("the reports of the searches and trials: carronade report list label.find=" + f.id)
	}
	return p.To(s.out)
}

// outcomeOf is the exit code of an answer that was printed and written, or of the problems with that.
func outcomeOf(code int, problems []error) error {
	if len(problems) > 0 && code != host.ExitInterrupted {
		code = host.ExitFailed
	}
	if code == host.ExitOK {
		return nil
	}
	return exitCode{Code: code, Err: errors.Join(problems...)}
}

// keepAnswerFor is the time that storing an answer may take.
const keepAnswerFor = 30 * time.Second

// keepAnswer stores the report of a search. A search that was resumed has one already, which stays
// if the new one cannot be stored.
func keepAnswer(in store.Store, d *report.Document) error {
	ctx, cancel := context.WithTimeout(context.Background(), keepAnswerFor) // interrupted searches are stored, too
	defer cancel()
	err := in.Put(ctx, d)
	if !errors.Is(err, store.ErrExists) {
		return err
	}
	before, err := in.Get(ctx, d.ID)
	if err != nil {
		return err
	}
	if err = in.Delete(ctx, d.ID); err != nil {
		return err
	}
	if err = in.Put(ctx, d); err != nil {
		return errors.Join(err, in.Put(ctx, before))
	}
	return nil
}

// deliverAnswer prints the report of a search and writes it to the requested files.
func (s *session) deliverAnswer(f *searching, o *outputs, d *report.Document, kept error) error {
	var problems []error
	write := func(flag, path, as string) {
		if path == "" {
			return
		}
		if err := cmdutil.WriteFile(path, func(w io.Writer) error { return export.Write(w, as, export.Of(d), export.Options{}) }); err != nil {
			problems = append(problems, cannotWrite(flag, path, err, "give a file in a writable folder; carronade report export writes the report of a search from the store"))
		}
	}
	write("--json-file", f.settings.Last("json-file"), "json")
	write("--html", f.html, "html")
	var err error
	switch {
	case o.json:
		err = d.WriteJSON(s.out)
	case f.again != "" && !o.full:
		err = d.Brief(s.out, s.style(), f.notKept(d)...)
	default:
		err = s.print(d, *o, kept)
	}
	if err != nil {
		problems = append(problems, fmt.Errorf("writing the report: %w", err))
	}
	if len(d.Search.Trials) > 0 && f.again == "" {
		s.reportStored(o.keep, d, kept, o.json || o.full)
	}
	return outcomeOf(d.ExitCode(), problems)
}
