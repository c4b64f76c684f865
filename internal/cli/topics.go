package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/cli/reports"
	"carronade/internal/report"
	"carronade/internal/run"
	"carronade/internal/workload"
	"carronade/protocol"
)

// keptTopics is where the report of a load on topics is stored, and why it could not be.
type keptTopics struct {
	*keeping
	err error
}

// makeTopics runs a load of operations on topics and stores its report as flags and configuration
// say. The labels of the flags are added to those of the job, and then more. The caller calls
// reportStored, and closes what it gets.
func (s *session) makeTopics(ctx context.Context, t *cmdutil.Settings, job run.TopicsJob, more map[string]string) (d *report.Document, kept *keptTopics, err error) {
	conf, err := s.configuration()
	if err != nil {
		return nil, nil, err
	}
	given := cmdutil.Settings{Doc: workload.Document{Entries: slices.Concat(conf.Entries, t.Doc.Entries)}}
	labels, err := workload.ParseLabels(given.All("label"))
	if err != nil {
		return nil, nil, &protocol.Error{Err: fmt.Errorf("--label: %w", err)}
	}
	kept = new(keptTopics)
	s.preparing.Lock() // steps of a scenario may start at the same time
	kept.keeping, err = s.keeping(ctx, t, true)
	s.preparing.Unlock()
	if err != nil {
		return nil, nil, err
	}
	all := map[string]string{}
	for _, some := range []map[string]string{job.Labels, labels, more} {
		maps.Copy(all, some)
	}
	job.Labels, job.Store, job.Version, job.Measured = all, kept.store, version(), s.Measured
	job.Stored = func(_ *report.Document, err error) { kept.err = err }
	if d, err = run.Topics(ctx, job); err != nil {
		kept.close()
		return nil, nil, err
	}
	return d, kept, nil
}

// keepTopics runs a load of operations on topics of this program's own command, and stores its
// report.
func (s *session) keepTopics(ctx context.Context, t *cmdutil.Settings, job run.TopicsJob, show func(d *report.Document, more []report.Condition) error) error {
	d, kept, err := s.makeTopics(ctx, t, job, nil)
	if err != nil {
		return err
	}
	defer kept.close()
	var more []report.Condition
	if kept.store != nil && kept.err == nil {
		more = reports.More(d, " in "+kept.store.Place(), storeFlag(kept.at))
	}
	err = show(d, more)
	s.reportStored(kept.keeping, d, kept.err, false)
	return err
}

// replayTopics makes the operations of a report on topics again: by the command that makes them,
// which has its own flags. Flags of the replay override those of the report.
func (s *session) replayTopics(ctx context.Context, t *cmdutil.Settings, d *report.Document) error {
	args, err := d.TopicsArgs()
	if err != nil {
		return &protocol.Error{
			Err:  fmt.Errorf("report %s is of operations on topics that cannot be replayed: %w", d.ID, err),
			Hint: "repeat the original command, or use carronade " + d.CommandArgs(),
		}
	}
	if err := sameTopics(d); err != nil {
		return err
	}
	args = append([]string{"topics"}, args...)
	if to := t.Last("target"); to != "" {
		args[2] = to
	}
	for _, k := range slices.Sorted(maps.Keys(d.Labels)) {
		if k != "as" && !ofPart(k) { // this is the program itself
			args = append(args, "--label="+k+"="+d.Labels[k])
		}
	}
	if t.Last("note") == "" {
		args = append(args, "--note=replay of "+d.ID)
	}
	root := s.root()
	cmd, _, err := root.Find(args)
	if err != nil {
		return err
	}
	for _, e := range t.Doc.Entries {
		switch {
		case e.Name == "target" || e.Name == "quiet":
			continue
		case cmd.Flags().Lookup(e.Name) == nil:
			return &protocol.Error{Err: fmt.Errorf("%s: not a flag of operations on topics, as in report %s", e.Where, d.ID), Hint: "carronade " + strings.Join(args[:2], " ") + " --help lists the flags"}
		}
		for _, v := range e.Values {
			args = append(args, "--"+e.Name+"="+v)
		}
	}
	if !t.Bool("quiet") {
		s.note("replaying %s of %s: %s", d.ID, d.StartedAt.UTC().Format("2006-01-02 15:04"), d.Headline())
	}
	root.SetArgs(args)
	return root.ExecuteContext(ctx)
}

// sameTopics checks that the file with the names of topics is the one of the report.
func sameTopics(d *report.Document) error {
	path, hash := "", ""
	for _, s := range d.Settings {
		switch s.Name {
		case report.TopicsFile:
			path = s.Value
		case report.TopicsFileHash:
			hash = s.Value
		}
	}
	if path == "" {
		return nil
	}
	sum, err := run.TopicsFileHash(path)
	if err != nil {
		return &protocol.Error{Err: fmt.Errorf("cannot read %s, which has names of topics of report %s: %s", path, d.ID, cmdutil.Reason(err)), Hint: "run this where the file is"}
	}
	if sum != hash {
		return &protocol.Error{Err: fmt.Errorf("%s has other contents than when report %s was made", path, d.ID), Hint: "carronade " + d.CommandArgs() + " uses the file as it is"}
	}
	return nil
}
