package heyapm

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"carronade/internal/place"
	"carronade/internal/store/elastic"
)

// The other commands of the shell that are available here: dump, and elasticsearch reset.

const (
	heyDumpForm  = "dump <file> <events> <spans> <frames>"
	heyResetForm = "-apm-es-url URL elasticsearch reset --yes"
)

// dumpBody writes the body of a request of test to a file.
func (o *heyOptions) dumpBody(args []string) (size int, err error) {
	if len(args) != 4 {
		return 0, fmt.Errorf("%s: got %d arguments", heyDumpForm, len(args))
	}
	var n [3]int
	for i, text := range args[1:] {
		if n[i], err = strconv.Atoi(text); err != nil || n[i] < 0 {
			return 0, fmt.Errorf("%s: %q is not a number", heyDumpForm, text)
		}
	}
	w := &heyWork{heyPart: heyPart{path: v1Transactions, intake: "v1", events: max(n[0], 1), spans: n[1], frames: max(n[2], 1)}, sized: true}
	if w.spans == 0 {
		w.path = v1Errors
	}
	plain, _, _, err := w.body()
	if err != nil {
		return 0, err
	}
	return len(plain), place.WriteFile(args[0], plain, 0o644) //nolint:gosec // not a secret
}

// reset deletes the indices of the APM Server in Elasticsearch, and returns how many
// documents they had. Without confirmation it deletes nothing.
func (t *heyRun) reset(ctx context.Context, args []string) (list []string, docs int64, err error) {
	yes := len(args) == 2 && args[1] == "--yes"
	switch {
	case t.indexURL == "":
		return nil, 0, errors.New("elasticsearch reset: give " + heyResetForm)
	case len(args) == 0 || args[0] != "reset" || len(args) == 2 && !yes || len(args) > 2:
		return nil, 0, errors.New("the only command for elasticsearch here is " + heyResetForm)
	}
	c := &elastic.APMCluster{URL: strings.TrimRight(t.indexURL, "/")}
	if t.indexAuth != "" {
		c.User, c.Password = t.login("-apm-es-auth", t.indexAuth)
	}
	fail := func(err error) error {
		if c.Check() != nil {
			return fmt.Errorf("-apm-es-url: %w", err)
		}
		return fmt.Errorf("elasticsearch %s: %w", c.URL, err)
	}
	if list, err = c.Names(ctx); err != nil {
		return nil, 0, fail(err)
	}
	if docs, err = c.Count(ctx, elastic.APMIndices); err != nil {
		return nil, 0, fail(err)
	}
	if !yes {
		return nil, 0, fmt.Errorf("elasticsearch reset would delete %d indices %s with %d docs of %s: add --yes", len(list), elastic.APMIndices, docs, c.URL)
	}
	if err := c.Delete(ctx, list); err != nil {
		return nil, 0, fail(err)
	}
	return list, docs, nil
}
