package standin

import (
	"math"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"

	"github.com/spf13/pflag"
)

// feed passes a constant schedule of rate to s, from a time for some seconds, and
// returns how many seconds the last event took.
func feed(t *testing.T, s *Queue, from, seconds, rate float64) (took float64) {
	t.Helper()
	for i := range int(seconds * rate) {
		arrived := at(from + float64(i)/rate)
		done, ok := s.Arrive(arrived, 1)
		assert.Must(t, ok, "refused")
		took = done.Sub(arrived).Seconds()
	}
	return took
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	assert.True(t, math.Abs(got-want) <= 0.01*math.Abs(want)+0.002, "%s is %.4f, want about %.4f", what, got, want)
}

// TestCollapse: after an overload the server is slower until it has caught up, so a
// rate that it took before is too much for it afterwards.
func TestCollapse(t *testing.T) {
	t.Parallel()
	o := CapacityOptions{Server: settings(t, "rate=1000/s,service=constant"), Collapse: time.Second}
	s := NewQueue(o)
	near(t, "a response below the capacity", feed(t, s, 0, 10, 900), 0.001)
	// 1,250/s: the wait grows by 0.25 s each second of arrivals, and is 1 s after 4
	// to 5 s. From then on only 500/s are served.
	feed(t, s, 10, 4, 1200)
	assert.True(t, !s.collapsed, "it collapsed before an event waited longer than 1 s")
	feed(t, s, 14, 2, 1200)
	assert.Must(t, s.collapsed, "it did not collapse")
	before := feed(t, s, 16, 10, 900)
	after := feed(t, s, 26, 10, 900)
	// Of 900/s it serves 500/s, so each second of arrivals needs 1.8 s.
	near(t, "the growth of the response at 900/s after the collapse", after-before, 8)
	// At 400/s it catches up: then it has its capacity again.
	last := feed(t, s, 36, 200, 400)
	assert.True(t, !s.collapsed, "it has not recovered, with a last response of %.3f s", last)
	near(t, "a response after the recovery", feed(t, s, 236, 10, 900), 0.001)
}

// TestCredits: from full credits a saturated server serves at the higher rate for
// exactly as long as they say, then at its own. A higher rate is sustained for longer
// the less it exceeds the server's. Idle time brings credits back.
func TestCredits(t *testing.T) {
	t.Parallel()
	o := CapacityOptions{Server: settings(t, "rate=1000/s,service=constant,queue=1m"), Credits: Credits{For: 60 * time.Second, Rate: 2000}}
	s := NewQueue(o)
	done, _ := s.Arrive(epoch, 120_000)
	near(t, "the time for what the credits pay", done.Sub(epoch).Seconds(), 60)
	done, _ = s.Arrive(epoch, 10_000)
	near(t, "the time for what they do not pay", done.Sub(epoch).Seconds(), 70)

	// Idle for 10 s: that is 10 s at 1,000/s, which pays the 1,000/s more of 2,000/s
	// for 10 s.
	done, _ = s.Arrive(at(80), 30_000)
	near(t, "the time after a pause", done.Sub(epoch).Seconds()-80, 10+10)

	// At 1,500/s the credits last for 120 s.
	s = NewQueue(o)
	near(t, "a response at 1,500/s while the credits last", feed(t, s, 0, 118, 1500), 0.0005)
	took := feed(t, s, 118, 10, 1500)
	assert.True(t, took >= 2, "a response at 1,500/s after the credits is %.3f s, want a growing queue", took)

	// At 900/s, below its own rate, it gains credits until they are full again.
	s = NewQueue(o)
	s.Arrive(epoch, 120_000)
	feed(t, s, 61, 1000, 900)
	near(t, "the credits after 1,000 s at 900/s", s.credit, 60)

	// At exactly its own rate it neither gains nor spends.
	s = NewQueue(o)
	s.Arrive(epoch, 60_000)
	was := s.credit
	feed(t, s, 30, 100, 1000)
	near(t, "the credits after 100 s at 1,000/s", s.credit, was)
}

// TestNoFreeCredits: rounding and single services do not give a server without
// credits more than its rate.
func TestNoFreeCredits(t *testing.T) {
	t.Parallel()
	for _, service := range []string{"constant", "exponential"} {
		o := CapacityOptions{Server: settings(t, "rate=1000/s,queue=1m,service="+service), Credits: Credits{For: time.Second, Rate: 50_000}}
		s := NewQueue(o)
		s.Arrive(epoch, 50_000)
		took := feed(t, s, 1, 300, 1100)
		// 330,000 events at 1,000/s need 330 s, which is 30 s more than they come in.
		assert.True(t, math.Abs(took-30) <= 2.5, "%s: the last event took %.2f s, want about 30", service, took)
	}
}

// TestWarm: a cold server has a quarter of its capacity, and all of it once it has
// served for as long as it needs; idle time does not warm it.
func TestWarm(t *testing.T) {
	t.Parallel()
	o := CapacityOptions{Server: settings(t, "rate=1000/s,service=constant,queue=1m"), Warm: 10 * time.Second}
	s := NewQueue(o)
	done, _ := s.Arrive(epoch, 1)
	near(t, "the first service", done.Sub(epoch).Seconds(), 0.004)
	// In 10 s of service it serves a mean of 62.5 % of 10,000.
	done, _ = s.Arrive(epoch, 6249)
	near(t, "the time to warm up", done.Sub(epoch).Seconds(), 10)
	done, _ = s.Arrive(epoch, 1000)
	near(t, "the time for the next 1,000", done.Sub(epoch).Seconds(), 11)

	s = NewQueue(o)
	s.Arrive(epoch, 1)
	near(t, "a service after an idle hour", feed(t, s, 3600, 0.001, 1000), 0.004)

	o.Server.Servers = 4
	s = NewQueue(o)
	done, _ = s.Arrive(epoch, 6250)
	near(t, "the time of four servers to warm up", done.Sub(epoch).Seconds(), 10)
}

// TestTogether: the capacity is that of the credits, warming up and a collapse
// together.
func TestTogether(t *testing.T) {
	t.Parallel()
	o := CapacityOptions{
		Server:   settings(t, "rate=1000/s,service=constant,queue=1m"),
		Credits:  Credits{For: time.Hour, Rate: 4000},
		Warm:     10 * time.Second,
		Collapse: time.Second,
	}
	s := NewQueue(o)
	done, _ := s.Arrive(epoch, 1)
	near(t, "a service with credits, cold", done.Sub(epoch).Seconds(), 0.001)
	s.Arrive(epoch, 100_000)
	assert.Must(t, s.collapsed, "it did not collapse")
	done, _ = s.Arrive(epoch, 1)
	next, _ := s.Arrive(epoch, 1000)
	near(t, "1,000 services with credits, warm, after a collapse", next.Sub(done).Seconds(), 0.5)
}

func TestParseSettings(t *testing.T) {
	t.Parallel()
	tests := testkit.Table[struct{ Name, In, Want, Err string }](t, "testdata/settings.yaml")
	for _, test := range tests {
		t.Run(test.Name, func(t *testing.T) {
			got, err := ParseSettings(test.In)
			if test.Err != "" {
				assert.ErrorHas(t, err, test.Err)
				return
			}
			assert.True(t, err == nil && got.String() == test.Want, "got %q, %v; want %q", got, err, test.Want)
			again, err := ParseSettings(got.String())
			assert.True(t, err == nil && again == got, "got %v, %v from %q, want the same", again, err, got)
		})
	}
}

func TestParseCredits(t *testing.T) {
	t.Parallel()
	got, err := ParseCredits("60s@2000/s")
	assert.True(t, err == nil && got == (Credits{time.Minute, 2000}) && got.String() == "1m@2k/s", "got %v, %v", got, err)
	for _, bad := range []string{"60s", "x@2000/s", "60s@x", "0s@2000/s", "60s@0/s", "60s@1G/s"} {
		_, err := ParseCredits(bad)
		assert.True(t, err != nil && strings.Contains(err.Error(), bad), "%s: got %v, want an error that names it", bad, err)
	}
}

func TestCheckCapacity(t *testing.T) {
	t.Parallel()
	rate := settings(t, "rate=1000/s")
	for _, test := range []struct {
		name string
		o    CapacityOptions
		want string
	}{
		{"nothing", CapacityOptions{}, ""},
		{"all", CapacityOptions{rate, time.Second, Credits{time.Second, 1001}, time.Second}, ""},
		{"a collapse of nothing", CapacityOptions{Collapse: time.Second}, "such as server rate=1000/s"},
		{"credits of nothing", CapacityOptions{Credits: Credits{time.Second, 5}}, "such as server rate=1000/s"},
		{"warming up of nothing", CapacityOptions{Warm: time.Second}, "such as server rate=1000/s"},
		{"credits for less", CapacityOptions{Server: rate, Credits: Credits{time.Second, 1000}}, "want more than the server's rate"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := ""
			if err := test.o.Check(); err != nil {
				got = err.Error()
			}
			assert.True(t, strings.Contains(got, test.want) && (test.want != "" || got == ""), "got %q, want %q", got, test.want)
		})
	}
}

func TestBindCapacity(t *testing.T) {
	t.Parallel()
	var o CapacityOptions
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.Bind(fs)
	assert.OK(t, fs.Parse([]string{"--server", "rate=5/s,service=constant", "--collapse", "--credits", "1m@6/s", "--warm=3s"}))
	want := CapacityOptions{CapacitySettings{5, Service{Kind: Constant}, 1, 100_000, 0}, time.Second, Credits{time.Minute, 6}, 3 * time.Second}
	assert.Equal(t, o, want)
	err := fs.Parse([]string{"--collapse=2s"})
	assert.True(t, err == nil && o.Collapse == 2*time.Second, "got %v, %v from --collapse=2s", o.Collapse, err)
}

// FuzzParseSettings: whatever is accepted is shown in a form that means the same.
func FuzzParseSettings(f *testing.F) {
	f.Add("rate=1000/s,service=lognormal(0.5),servers=1,queue=100k,seed=3")
	f.Add("rate=3/min")
	f.Fuzz(func(t *testing.T, s string) {
		v, err := ParseSettings(s)
		if err != nil {
			return
		}
		again, err := ParseSettings(v.String())
		assert.True(t, err == nil && again == v, "%q is shown as %q, which means %v, %v", s, v, again, err)
	})
}
