package workload

import (
	"net/url"
	"testing"

	"carronade/protocol"
	"carronade/test/testkit/assert"
)

// herd is a gun with clients, and a default of its own.
type herd struct {
	gun
	preset string
}

func (herd) Options() []protocol.Option {
	return []protocol.Option{{Name: "clients", Type: protocol.Int, Default: "1", Help: "clients"}}
}

func (h herd) Capabilities() protocol.KindCapabilities {
	return protocol.KindCapabilities{Presets: h.presets}
}

func (h herd) presets(*url.URL, protocol.Values, map[string]bool) (map[string]string, []string, error) {
	if h.preset == "" {
		return nil, nil, nil
	}
	return map[string]string{"max-in-flight": h.preset}, nil, nil
}

// The default limit of what is in flight is for the whole run, divided among its clients; one that is given is of each
// connection. The workload of a report, which has all defaults, means the same.
func TestInFlightOfTheRun(t *testing.T) {
	for _, tt := range []struct {
		name, preset string
		flags        *Document
		want         int
	}{
		{"one client", "", flags("target=gun://h:1"), 5},
		{"many clients", "", flags("target=gun://h:1", "clients=5000"), 5},
		{"given", "", flags("target=gun://h:1", "clients=1000", "max-in-flight=7"), 7},
		{"one client of a kind with many batches", "1000", flags("target=gun://h:1"), 1000},
		{"a kind with one", "1", flags("target=gun://h:1", "clients=8"), 1},
		{"its clients", "1000", flags("target=gun://h:1", "clients=8"), 125},
		{"a thousand of them", "1000", flags("target=gun://h:1", "clients=1000"), 5},
		{"given for them", "1000", flags("target=gun://h:1", "clients=1000", "max-in-flight=1k"), 1000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			kinds := []protocol.Kind{herd{preset: tt.preset}}
			w := assert.Value(Resolve(kinds, tt.flags, nil))(t)
			p := assert.Value(w.Plan())(t)
			assert.Equal(t, p.MaxInFlight, tt.want, "batches in flight on a connection")
			assert.Equal(t, assert.Value(w.Spec())(t).MaxInFlight, tt.want, "as the kind gets it")
			text := assert.Value(w.MarshalJSON())(t)
			file := assert.Value(ParseDocument("report.json", text))(t)
			again := assert.Value(Resolve(kinds, nil, file))(t)
			p = assert.Value(again.Plan())(t)
			assert.Equal(t, p.MaxInFlight, tt.want, "batches in flight of the replay")
			assert.Equal(t, len(again.Warnings), 0, "warnings of the replay: %v", again.Warnings)
		})
	}
}
