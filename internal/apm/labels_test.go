package apm

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"carronade/internal/apm/standin"
	"carronade/test/testkit/assert"
)

// Labels by expressions are in every transaction, error, metricset and log, and spans have
// none; from event to event they differ.
func TestLabelsArrive(t *testing.T) {
	t.Setenv("CARRONADE_TEST", "quotes \" and ä")
	const events = 400
	options := map[string]string{
		"events": "10", "spans": "1", "mix": "transaction=1,error=1,metricset=1,log=1", "clients": "2", "pool": "1MiB",
		optEventLabel: "order=o-${rnd.nextInt(1000000)}\x00fixed=a=b\x00env=%{env:get('CARRONADE_TEST')}",
	}
	for _, gzip := range []string{"none", "1"} {
		s := newIntake(t, false)
		options["gzip"] = gzip
		r := fire(t, open(t, s.url(), options), plan(events))
		assert.Must(t, r.Measurement.Acked == events, "acked %d of %d", r.Measurement.Acked, events)
		bodies, _ := s.taken()
		kinds, orders := map[string]int{}, map[string]bool{}
		for line := range bytes.Lines(bytes.Join(bodies, nil)) {
			var l map[string]struct {
				Tags    map[string]string `json:"tags"`
				Labels  map[string]string `json:"labels"`
				Context struct {
					Tags map[string]string `json:"tags"`
				} `json:"context"`
			}
			if bytes.HasPrefix(line, []byte(`{"metadata"`)) {
				continue
			}
			assert.OK(t, json.Unmarshal(line, &l), "%s", line)
			for kind, e := range l {
				labels := e.Context.Tags
				switch kind {
				case "metricset":
					labels = e.Tags
				case "log":
					labels = e.Labels
				case "span":
					continue
				}
				kinds[kind]++
				if !strings.HasPrefix(labels["order"], "o-") || labels["fixed"] != "a=b" || labels["env"] != "quotes \" and ä" || len(labels) < 4 {
					t.Fatalf("a %s has the labels %v", kind, labels)
				}
				orders[labels["order"]] = true
			}
		}
		assert.True(t, len(kinds) == 4 && len(orders) >= 100, "gzip %s: %v events with %d different labels", gzip, kinds, len(orders))
	}
}

// The stand-in, which checks events, accepts labels in every protocol.
func TestLabelsAreValid(t *testing.T) {
	t.Parallel()
	for _, intake := range []string{"v2", "rum-v2", "rum-v3", "v1"} {
		s := startStandin(t, standin.Options{V1: intake == "v1"})
		r := fire(t, open(t, "apm+http://"+s.Addr(), map[string]string{"intake": intake, optEventLabel: "order=${rnd.nextLong()}"}), plan(400))
		assert.Equal(t, r.Measurement.Acked, 400, "%s: events acked: %v", intake, r.Failures)
		m, err := newBodyPool(spec(t, "apm+http://h", map[string]string{"intake": intake, optEventLabel: "order=o-${rnd.nextLong()}"}).Options, 1, true)
		assert.OK(t, err)
		body := m.source.Make(3).Bytes
		assert.True(t, bytes.Count(body, []byte(`"order":"o-`)) == 10, "%s: the body has not ten labels: %s", intake, body)
	}
}

// A server that repeats a label in its error does not show the environment.
func TestLabelsHideTheEnvironment(t *testing.T) {
	const value = "hunter2&<more>"
	t.Setenv("CARRONADE_TEST", value)
	c, err := parseConfig(spec(t, "apm+http://h", map[string]string{optEventLabel: "a=%{env:get('CARRONADE_TEST')}"}), true)
	assert.OK(t, err)
	sent := assert.Value(json.Marshal(value))(t)
	for _, text := range []string{value, string(sent), strconv.Quote(value)} {
		got := c.redactor.Line("invalid label " + text)
		assert.True(t, !strings.Contains(got, "hunter2") && !strings.Contains(got, "more"), "got %q", got)
	}
}

func TestLabelErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ label, want string }{
		{"order", "a name or a value is missing"},
		{"=x", "a name or a value is missing"},
		{"a-${1}=x", "a name is not an expression"},
		{"a.b=x", "servers replace them"},
		{"tier=x", "events have a label tier anyway"},
		{"order=${foo}", "at 9: foo is not known"},
		{"order=${time:nanos()}", "events are made before the run here"},
		{"order=#{1}", "events are made before the run here"},
		{"order=${string:format('%1000d%1000d', rnd.nextInt(), 1)}", "servers accept 1024"},
		{"order=1\x00order=2", "two labels order"},
	} {
		_, err := parseConfig(spec(t, "apm+http://h", map[string]string{optEventLabel: tt.label}), true)
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "--"+optEventLabel) {
			t.Errorf("%s: got %v, want %s", tt.label, err, tt.want)
		}
	}
	_, err := parseConfig(spec(t, "apm+http://h", map[string]string{optEventLabel: "a=b", "corpus": "x"}), true)
	assert.ErrorHas(t, err, "recorded", "labels and a corpus")
}
