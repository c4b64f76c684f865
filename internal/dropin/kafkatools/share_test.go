package kafkatools

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"carronade/internal/dropin"
	"carronade/internal/dropin/dropintest"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/test/testkit/assert"
)

func runShareTool(t *testing.T, p dropin.Program, args ...string) dropintest.Result {
	t.Helper()
	_, share := toolsAtBegan()
	return runWith(t, share, p, args, func(d *workload.Document, observer dropin.Observer) (*report.Document, error) {
		doc := consumed(d, observer)
		// The types of a report that was written and read.
		doc.Facts = map[string]any{"share_group": map[string]any{"member_events": []any{7000.0, 5000.0}, "member_bytes": []any{700_000.0, 500_000.0}}}
		return doc, nil
	})
}

func TestShareCases(t *testing.T) {
	dropintest.AsPrinted(t, "share", "--show-consumer-stats", runShareTool)
	got := runShareTool(t, dropin.Program{Generation: "4.3"}, strings.Fields("--bootstrap-server a:1 --topic t --messages 12000 --hide-header --consumer.config testdata/acks.properties")...)
	want := "Warning: --messages is deprecated. Use --num-records instead.\nWarning: --consumer.config is deprecated. Use --command-config instead.\n2018"
	assert.True(t, strings.HasPrefix(got.Out, want), "stdout %q", got.Out)
	allTested(t, "testdata/cases/share.txt", shareOptions(), func(o joptOption) string { return o.name })
}

func TestShareExit(t *testing.T) {
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name   string
		strict bool
		ctx    context.Context
		doc    *report.Document
		err    error
		code   int
		rows   int
		errs   string
	}{
		{"refused", false, t.Context(), nil, errors.New("connection refused"), 0, 0, ""},
		{"interrupted before the run", false, stopped, nil, context.Canceled, 130, 0, ""},
		{"interrupted", false, t.Context(), &report.Document{Stopped: load.Interrupted}, nil, 130, 1, ""},
		{"interrupted, strict", true, t.Context(), &report.Document{Stopped: load.Interrupted}, nil, 130, 0, ""},
		{"nothing came", true, t.Context(), &report.Document{Stopped: load.ByIdle}, nil, 0, 1, "hint: a share group begins at the end of its topics"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := dropin.Program{Args: strings.Fields("--bootstrap-server h:1 --topic t --num-records 5 --hide-header"), Strict: tt.strict}
			got := dropintest.Run(tt.ctx, t, &Share, p, func(*workload.Document, dropin.Observer) (*report.Document, error) { return tt.doc, tt.err })
			if got.Code != tt.code || strings.Count(got.Out, "\n") != tt.rows || (got.Err != nil) != (tt.err != nil && got.Code == 0) || !strings.HasPrefix(got.Errs, tt.errs) {
				t.Errorf("exit %d, error %v, stdout %q, stderr %q", got.Code, got.Err, got.Out, got.Errs)
			}
		})
	}
}

// Each consumer of a share group has a separate table.
func TestShareMetrics(t *testing.T) {
	got := runShareTool(t, dropin.Program{}, strings.Fields("--bootstrap-server h:1 --topic t --num-records 12000 --threads 2 --print-metrics --hide-header")...)
	tables := strings.Split(got.Out, "\n\n")
	assert.Must(t, len(tables) == 3, "%d tables:\n%s", len(tables)-1, got.Out)
	for i, n := range []string{"7000", "5000"} {
		id := "{client-id=perf-share-consumer-client-" + string(rune('1'+i)) + "}"
		for _, want := range []string{"consumer-share-fetch-manager-metrics:records-consumed-total:" + id + " : " + n + ".000", "consumer-share-fetch-manager-metrics:bytes-consumed-total:" + id + " +: " + n + "00.000"} {
			assert.True(t, regexp.MustCompile(want).MatchString(tables[i+1]), "no %q in\n%s", want, tables[i+1])
		}
		assert.True(t, !strings.Contains(tables[i+1], "consumer-fetch-manager-metrics"),
			"a group of another client:\n%s", tables[i+1])
	}
}
