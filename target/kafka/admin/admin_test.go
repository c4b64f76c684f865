package admin

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestDue(t *testing.T) {
	for _, tt := range []struct {
		name string
		work Work
		at   time.Duration
		want uint64
	}{
		{"none yet", Work{Op: List, Times: -1, Rate: 10}, 0, 0},
		{"the first", Work{Op: List, Times: -1, Rate: 10}, 1, 1},
		{"ten", Work{Op: List, Times: -1, Rate: 10}, time.Second, 10},
		{"eleven", Work{Op: List, Times: -1, Rate: 10}, time.Second + 1, 11},
		{"thirds", Work{Op: List, Times: -1, Rate: 3}, 3 * time.Second, 9},
		{"several in a request", Work{Op: Create, Next: func() string { return "" }, Times: -1, Rate: 3, PerRequest: 10}, time.Second + 1, 40},
		{"one in a listing", Work{Op: List, Times: -1, Rate: 3, PerRequest: 10}, time.Second + 1, 4},
		{"a number", Work{Op: Create, Next: func() string { return "" }, Times: 25, Rate: 3, PerRequest: 10}, time.Second, 25},
		{"a number that is not reached", Work{Op: List, Times: math.MaxInt, Rate: 10}, time.Second, 10},
		{"names", Work{Op: Delete, Names: Names("x", 7), Rate: 10}, time.Minute, 7},
		{"until its time is over", Work{Op: List, Times: -1, Rate: 50, For: 100 * time.Millisecond}, time.Minute, 5},
		{"without a rate", Work{Op: List, Times: -1}, time.Minute, 0},
	} {
		if got := tt.work.DueBefore(tt.at); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestSpec(t *testing.T) {
	for _, tt := range []struct {
		name, text, want string
		wrong            bool
	}{
		{name: "all", text: "partitions=3,replicas=2,retention.ms=5", want: "partitions=3,replicas=2,retention.ms=5"},
		{name: "config prefix", text: "config.b=2,config.a=1", want: "a=1,b=2"},
		{name: "value with a comma", text: "cleanup.policy=compact,delete,partitions=1", want: "partitions=1,cleanup.policy=compact,delete"},
		{name: "empty", text: "", want: ""},
		{name: "broker defaults", text: "auto", want: ""},
		{name: "broker defaults, with a setting", text: "auto,retention.ms=5", want: "retention.ms=5"},
		{name: "no value", text: "partitions", wrong: true},
		{name: "zero", text: "replicas=0", wrong: true},
		{name: "too many", text: "replicas=40000", wrong: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseSpec(tt.text)
			if (err != nil) != tt.wrong {
				t.Fatalf("got error %v, want one: %v", err, tt.wrong)
			}
			if err == nil && got.String() != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// The texts of two layouts differ wherever the layouts differ.
func TestLayoutOfMany(t *testing.T) {
	of := func(n int, change ...int) string {
		leaders := make([]int32, n)
		for i := range leaders {
			leaders[i] = int32(i % 3)
		}
		for _, i := range change {
			leaders[i] = 7
		}
		return Layout(leaders)
	}
	if got, want := of(6), "0: 0 3, 1: 1 4, 2: 2 5"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	all := of(120)
	if !strings.Contains(all, "(the first 64 of 120; #") {
		t.Errorf("got %q", all)
	}
	if of(120) != all || of(120, 119) == all || of(121) == all {
		t.Errorf("got %q, and %q with another leader, and %q with one more partition", all, of(120, 119), of(121))
	}
}
