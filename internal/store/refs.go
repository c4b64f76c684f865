package store

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"carronade/internal/advice"
	"carronade/protocol"
)

// candidates is the maximum number of reports listed for an ambiguous
// reference.
const candidates = 6

// last is the newest report, last~2 the one two before it.
var last = regexp.MustCompile(`^last(?:~([0-9]{1,9}))?$`)

// IsReference reports whether a word can mean one report, unlike the word of a
// filter: it is an id, the beginning of one, last or last~N.
func IsReference(word string) bool {
	return last.MatchString(word) || word != "" && strings.Trim(strings.ToLower(word), "0123456789abcdefghijklmnopqrstuvwxyz") == ""
}

// IsID reports whether a text can be the id of a report: others could be taken for a path, or not be found again.
func IsID(text string) bool {
	return IsReference(text) && !last.MatchString(text) && text == strings.ToLower(text)
}

// Resolve returns the id of the one report that a reference means: an id, the
// beginning of an id that no other has, last (the newest whose run has ended)
// or last~N. The error is a *protocol.Error; if no report matches, it wraps
// ErrMissing.
func Resolve(ctx context.Context, s Store, ref string) (string, error) {
	if m := last.FindStringSubmatch(ref); m != nil {
		n, _ := strconv.Atoi(m[1]) // at most nine digits, or none: 0
		return newest(ctx, s, ref, n)
	}
	doing := fmt.Sprintf("look for report %q", ref)
	if !IsReference(ref) {
		hint := "an id is letters and digits; carronade report list shows them, and last is the newest"
		if strings.ContainsAny(ref, `./\`) {
			hint += "; carronade report import FILE takes one from a file"
		}
		return "", &protocol.Error{Doing: doing, Err: errors.New("it is not an id"), Hint: hint}
	}
	ref = strings.ToLower(ref)
	ids, err := s.Find(ctx, ref, candidates+1)
	switch {
	case err != nil:
		return "", err
	case len(ids) == 1:
		return ids[0], nil
	case len(ids) == 0:
		return "", unknown(ctx, s, ref)
	}
	for _, id := range ids {
		if id == ref {
			return id, nil
		}
	}
	more := ""
	if len(ids) > candidates {
		ids, more = ids[:candidates], " and others"
	}
	return "", &protocol.Error{Doing: doing, Err: fmt.Errorf("several reports match: %s%s", strings.Join(ids, ", "), more), Hint: "give more letters"}
}

// newest is the n-th report before the newest one. Runs in progress are not
// counted: their numbers are incomplete.
func newest(ctx context.Context, s Store, ref string, n int) (string, error) {
	for extra := 1; ; extra *= 8 {
		rows, err := s.Rows(ctx, Query{Limit: n + extra, Fields: []string{}})
		if err != nil {
			return "", err
		}
		ended := 0
		for i := range rows {
			if rows[i].Running {
				continue
			}
			if ended == n {
				return rows[i].ID, nil
			}
			ended++
		}
		if len(rows) < n+extra {
			e := &protocol.Error{Doing: "look for report " + ref, Err: fmt.Errorf("%w: there are %d", ErrMissing, ended), Hint: "carronade report list shows what is there"}
			if ended == 0 {
				e.Err, e.Hint = fmt.Errorf("%w: %s is empty", ErrMissing, s.Place()), "carronade run makes one"
			}
			return "", e
		}
	}
}

// unknown is the error of an id that no report has.
func unknown(ctx context.Context, s Store, ref string) error {
	const among = 5000 // the newest
	ids, err := s.Find(ctx, "", among)
	if err != nil {
		return err
	}
	words := append([]string{"last"}, ids...)
	return &protocol.Error{
		Err:  reason{fmt.Sprintf("no report has the id %q", ref), ErrMissing},
		Hint: advice.DidYouMean(ref, words, "%s", "carronade report list shows what is there"),
	}
}

// Choose returns the ids that words mean: references, in their order and each
// report once, or filters, newest first. Words of both kinds together are an
// error. Without words, or if no report matches the filters, the result is empty.
func Choose(ctx context.Context, s Store, words []string, q Query) ([]string, error) {
	if len(words) == 0 {
		return nil, nil
	}
	references := 0
	for _, w := range words {
		if IsReference(w) {
			references++
		}
	}
	if references == 0 {
		var err error
		if q.Filters, err = ParseFilters(words, time.Now()); err != nil {
			return nil, err
		}
		q.Fields = []string{}
		rows, err := s.Rows(ctx, q)
		if err != nil {
			return nil, err
		}
		ids := make([]string, len(rows))
		for i := range rows {
			ids[i] = rows[i].ID
		}
		return ids, nil
	}
	if references < len(words) {
		return nil, &protocol.Error{
			Doing: "read " + strings.Join(words, " "), Err: errors.New("reports and filters cannot be mixed"),
			Hint: "give reports, such as last and last~2, or filters, such as branch=main",
		}
	}
	var ids []string
	seen := make(map[string]bool)
	for _, w := range words {
		id, err := Resolve(ctx, s, w)
		if err != nil {
			return nil, err
		}
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids, nil
}
