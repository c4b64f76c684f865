package judge

import (
	"slices"
	"testing"

	"carronade/internal/store"
	"carronade/test/testkit/assert"
)

// Settings that brokers do not have and settings that are not known are
// different.
func TestBrokersThatDoNotDescribe(t *testing.T) {
	set := func(described float64, more ...string) fields {
		f := fields{"target.brokers": 3.0, brokersDescribed: described}
		for i := 0; i < len(more); i += 2 {
			f[brokerSettings+more[i]] = more[i+1]
		}
		return f
	}
	// many are nine settings, the last one named last, and a sum of the rest.
	many := func(sum, last string) fields {
		f := set(3, store.RestName, sum)
		for c := last[0] - 8; c <= last[0]; c++ {
			f[brokerSettings+string(c)] = "1"
		}
		return f
	}
	unasked := fields{"target.brokers": 3.0}
	older := fields{"target.brokers": 3.0, brokerSettings + "num.io.threads": "8", brokerSettings + "num.network.threads": "3"}
	two := set(3, "num.io.threads", "8", "num.network.threads", "3")
	for _, tt := range []struct {
		name            string
		base, candidate fields
		some            fields // of the first two runs of the candidate, if they differ
		want            []string
	}{
		{name: "neither side knows", base: set(0), candidate: set(0)},
		{name: "no brokers"},
		{name: "the same", base: two, candidate: two},
		{name: "the base does not know", base: set(0), candidate: two, want: []string{"the base does not know its brokers' settings"}},
		{name: "a base older than the query", base: unasked, candidate: two, want: []string{"the base does not know its brokers' settings"}},
		{name: "a base older than the count", base: older, candidate: two},
		{name: "the candidate does not know", base: two, candidate: set(0), want: []string{"the candidate does not know its brokers' settings"}},
		{
			name: "one broker of several answered", base: two, candidate: set(1, "num.io.threads", "64"),
			want: []string{"only 1 of 3 brokers of the candidate reported their settings"},
		},
		{
			name: "some runs know nothing", base: two, candidate: two, some: set(0),
			want: []string{"2 of the candidate's 6 runs do not know all brokers' settings"},
		},
		{
			name: "some runs know nothing, and the others differ", base: two, candidate: set(3, "num.io.threads", "64", "num.network.threads", "3"), some: set(0),
			want: []string{"2 of the candidate's 6 runs do not know all brokers' settings", "!broker settings num io threads was 8 and is 64"},
		},
		{
			name: "a setting on one side only", base: set(3), candidate: set(3, "num.io.threads", "64"),
			want: []string{"!broker settings num io threads was not set and is 64"},
		},
		{
			name: "more than can be listed", base: many("#1", "k"), candidate: many("#2", "k"),
			want: []string{"!too many broker settings differ to list (report show --json has both)"},
		},
		{
			name: "one more displaces the last", base: many("#1", "k"), candidate: many("#2", "j"),
			want: []string{"!too many broker settings differ to list (report show --json has both)", "!broker settings b was not set and is 1"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			base, candidate := runs(1, "a", 6, 1, 1, 0.01, tt.base), runs(2, "b", 6, 1, 1, 0.01, tt.candidate)
			if tt.some != nil {
				copy(candidate, runs(2, "b", 2, 1, 1, 0.01, tt.some))
			}
			var got []string
			for _, f := range between(base, candidate) {
				text := f.Text
				if f.Severe {
					text = "!" + text
				}
				assert.Equal(t, f.About, "servers", "subject of %s", f.Text)
				got = append(got, text)
			}
			slices.Sort(got)
			slices.Sort(tt.want)
			assert.Same(t, got, tt.want)
		})
	}
}
