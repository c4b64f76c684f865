package fault_test

import (
	"testing"
	"time"

	"carronade/internal/verdict/fault"
	"carronade/test/testkit/assert"
)

func TestParse(t *testing.T) {
	const second = time.Second
	for _, tt := range []struct {
		text, name string
		want       fault.Fault
		err        string
	}{
		{"60s:stop=leader,10s", "stop leader", fault.Fault{At: 60 * second, Action: "stop", What: "leader", Number: -1, Length: 10 * second}, ""},
		{"1m:kill=leader:3", "kill leader 3", fault.Fault{At: 60 * second, Action: "kill", What: "leader", Number: 3}, ""},
		{"5s:stop=pid:4711,1s", "stop pid 4711", fault.Fault{At: 5 * second, Action: "stop", What: "pid", Number: 4711, Length: second}, ""},
		{"5s:stop=system, 1s", "stop system", fault.Fault{At: 5 * second, Action: "stop", What: "system", Number: -1, Length: second}, ""},
		{"5s:restart=system", "restart system", fault.Fault{At: 5 * second, Action: "restart", What: "system", Number: -1}, ""},
		{"5s:restart=system,2s", "restart system", fault.Fault{At: 5 * second, Action: "restart", What: "system", Number: -1, Length: 2 * second}, ""},
		{text: "5s", err: "TIME:ACTION=WHAT"},
		{text: "5s:stop", err: "TIME:ACTION=WHAT"},
		{text: "5:stop=system,1s", err: "its time"},
		{text: "5s:stop=system", err: "has a length"},
		{text: "5s:stop=system,1", err: "its length"},
		{text: "5s:kill=system", err: "nothing is left"},
		{text: "5s:kill=leader,3s", err: "does not come back"},
		{text: "5s:restart=leader", err: "only the system"},
		{text: "5s:break=system", err: `"break" is not an action: they are stop, kill and restart`},
		{text: "5s:break=all,a,1s", err: "not an action"},
		{text: "5s:kill=broker", err: "not one of system"},
		{text: "5s:kill=pid", err: "lacks the process id"},
		{text: "5s:kill=pid:0", err: "not a number"},
		{text: "5s:kill=leader:x", err: "not a number"},
		{text: "5s:stop=system:1,1s", err: "not one of system"},
	} {
		got, err := fault.Parse(tt.text)
		switch {
		case tt.err != "":
			assert.ErrorHas(t, err, tt.err, "%s", tt.text)
		case err != nil || got != tt.want || got.String() != tt.name:
			t.Errorf("%s: got %+v (%s), %v, want %+v (%s)", tt.text, got, got.String(), err, tt.want, tt.name)
		}
	}
}

func TestParseMoment(t *testing.T) {
	for _, tt := range []struct {
		text string
		want fault.Moment
		ok   bool
	}{
		{"60s", fault.Moment{At: time.Minute, Kind: "fault"}, true},
		{"70s:heal", fault.Moment{At: 70 * time.Second, Kind: "heal"}, true},
		{"1s:note", fault.Moment{At: time.Second, Kind: "note"}, true},
		{"1s:end", fault.Moment{}, false},
		{"1", fault.Moment{}, false},
	} {
		got, err := fault.ParseMoment(tt.text)
		assert.True(t, (err == nil) == tt.ok && got == tt.want, "%s: got %+v, %v", tt.text, got, err)
	}
}

func TestOverlaps(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"5s:stop=system,2s", "6s:stop=leader,2s", true},
		{"5s:stop=system,2s", "7s:stop=system,2s", false},
		{"5s:stop=pid:7,2s", "6s:stop=pid:8,2s", false},
		{"5s:stop=pid:7,2s", "6s:stop=pid:7,1s", true},
		{"5s:stop=system,2s", "6s:restart=system,1s", true},
		{"5s:stop=system,2s", "6s:kill=leader", false},
		{"5s:restart=system,2s", "6s:restart=system,1s", false},
		{"5s:kill=leader", "5s:kill=leader", false},
	} {
		a := assert.Value(fault.Parse(tt.a))(t)
		b := assert.Value(fault.Parse(tt.b))(t)
		got := []bool{a.Overlaps(&b), b.Overlaps(&a)}
		assert.True(t, got[0] == tt.want && got[1] == tt.want, "%s and %s: got %v, want %v", tt.a, tt.b, got, tt.want)
	}
}
