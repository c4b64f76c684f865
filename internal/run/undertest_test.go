package run

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"carronade/load"
	"carronade/measure"
	"carronade/protocol"
	"carronade/test/testkit/assert"
)

// A ported kind has a default port.
type ported struct{ protocol.Kind }

func (ported) Capabilities() protocol.KindCapabilities {
	return protocol.KindCapabilities{DefaultPort: func(scheme string) string {
		return map[string]string{"cannon": "17", "cannon+tls": "18"}[scheme]
	}}
}

func TestListening(t *testing.T) {
	for _, tt := range []struct {
		name          string
		kind          protocol.Kind
		scheme, hosts string
		want          []string
	}{
		{"ports", ported{}, "cannon", "a:1,b:2", []string{"a:1", "b:2"}},
		{"no port", ported{}, "cannon", "a", []string{"a:17"}},
		{"by the scheme", ported{}, "cannon+tls", "a,b:2", []string{"a:18", "b:2"}},
		{"an address of version 6", ported{}, "cannon", "[::1],[::1]:2", []string{"[::1]:17", "[::1]:2"}},
		{"a colon and no port", ported{}, "cannon", "a:", []string{"a:17"}},
		{"a kind without a default port", &fakeKind{}, "cannon", "a", nil},
		{"no host", ported{}, "cannon", "", nil},
	} {
		got := listening(tt.kind, &url.URL{Scheme: tt.scheme, Host: tt.hosts})
		assert.True(t, slices.Equal(got, tt.want), "%s: got %q, want %q", tt.name, got, tt.want)
	}
}

func TestOtherHosts(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"a machine", `{"os":"linux","cores":4,"more":1}`, ""},
		{"nothing", "", "not what carronade host --json prints"},
		{"a number", "5", "not what carronade host --json prints"},
		{"something else", `{"os":1}`, "not what carronade host --json prints"},
		{"no machine", "{}", "names no system"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "host.json")
			assert.OK(t, os.WriteFile(path, []byte(tt.text), 0o600))
			got, err := otherHosts([]string{path})
			switch {
			case tt.want == "" && (err != nil || len(got) != 1):
				t.Errorf("got %v, %v", got, err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, %v, want %q", got, err, tt.want)
			}
		})
	}
}

// TestCameBack: CameBack gets each event that came back, with times whose sum
// is the report's, and Facts is called before anything is sent.
func TestCameBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &fakeKind{consumeDelay: 2 * time.Millisecond, perBatch: 1}
		var met []time.Duration
		var found map[string]any
		doc := assert.Value(Execute(t.Context(), Job{
			Portable: true, Workload: resolve(t, m, "op=roundtrip", "concurrency=1", "count=25", "batch-events=1"),
			Facts:    func(facts map[string]any) { found = facts },
			Opened:   func() { assert.True(t, found != nil, "Opened was called before Facts") },
			CameBack: func(d time.Duration) { met = append(met, d) },
		}))(t)
		var sum time.Duration
		for _, d := range met {
			sum += d
		}
		assert.True(t, len(met) == 25 && doc.EndToEnd.Count == 25 && sum == 25*3*time.Millisecond,
			"got %d events of %v in all, the report has %d; want 25 of 75ms", len(met), sum, doc.EndToEnd.Count)
	})
}

// Outcomes gets the outcome of every event, with a trace or without one.
func TestOutcomes(t *testing.T) {
	for _, file := range []string{"", filepath.Join(t.TempDir(), "t.parquet")} {
		synctest.Test(t, func(t *testing.T) {
			set, acked, service := []string{"concurrency=2", "count=30", "batch-events=3"}, uint32(0), measure.NewHistogram()
			if file != "" {
				set = append(set, "trace="+file)
			}
			m := &fakeKind{consumeDelay: 2 * time.Millisecond, perBatch: 3}
			doc := assert.Value(Execute(t.Context(), Job{
				Portable: true,
				Workload: resolve(t, m, set...), Trace: file,
				Outcomes: func(out []load.Outcome) { // on one thread: there is one client
					for i := range out {
						acked += uint32(out[i].Acked)
						service.Record(out[i].Done - out[i].Sent)
					}
				},
			}))(t)
			assert.True(t, acked == 30 && doc.Totals.Acked == 30 && service.Count() == doc.Service.Count && (file == "" || doc.Trace.Rows != 0),
				"saw %d events in %d batches, the report has %d in %d", acked, service.Count(), doc.Totals.Acked, doc.Service.Count)
		})
	}
}

// TestPermit: an error of Permit ends the run before anything is sent.
func TestPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("not this one")
		opened := false
		doc, err := Execute(t.Context(), Job{
			Portable: true, Workload: resolve(t, &fakeKind{}, "count=10"),
			Permit: func(map[string]any) error { return refused },
			Opened: func() { opened = true },
			Watch:  func(load.Snapshot) { t.Error("the run began") },
		})
		assert.True(t, errors.Is(err, refused) && doc == nil && !opened, "got %v and %v, opened %v; want the error alone", doc, err, opened)
	})
}
