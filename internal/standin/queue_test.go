package standin

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

var epoch = time.Unix(1_000_000_000, 0)

func settings(t testing.TB, s string) CapacitySettings {
	t.Helper()
	v := assert.Value(ParseSettings(s))(t)
	return v
}

func at(seconds float64) time.Time { return epoch.Add(time.Duration(math.Round(seconds * 1e9))) }

// TestResponseTimes compares response times with the closed forms of queueing theory, in units of the mean service time: the
// share of events above each quantile. Schedules are constant (D) or Poisson (M), service times exponential (M) or constant (D).
func TestResponseTimes(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	quantiles := [4]float64{0.5, 0.9, 0.99, 0.999}
	for i, test := range []struct {
		queue string
		rho   float64
		want  [4]float64
	}{
		{"M/M/1", 0.5, [4]float64{1.3863, 4.6052, 9.2103, 13.8155}},
		{"M/M/1", 0.7, [4]float64{2.3105, 7.6753, 15.3506, 23.0259}},
		{"M/M/1", 0.8, [4]float64{3.4657, 11.5129, 23.0259, 34.5388}},
		{"M/M/1", 0.9, [4]float64{6.9315, 23.0259, 46.0517, 69.0776}},
		{"M/M/1", 0.95, [4]float64{13.8629, 46.0517, 92.1034, 138.1551}},
		{"M/D/1", 0.5, [4]float64{1, 2.5157, 4.3363, 6.1684}},
		{"M/D/1", 0.7, [4]float64{1.7298, 4.0771, 7.4855, 10.8944}},
		{"M/D/1", 0.8, [4]float64{2.2759, 6.0115, 11.3559, 16.7003}},
		{"M/D/1", 0.9, [4]float64{4.0130, 11.7825, 22.8982, 34.0140}},
		{"M/D/1", 0.95, [4]float64{7.4807, 23.3022, 45.9378, 68.5733}},
		{"D/M/1", 0.5, [4]float64{0.8699, 2.8897, 5.7795, 8.6692}},
		{"D/M/1", 0.7, [4]float64{1.3005, 4.3200, 8.6400, 12.9601}},
		{"D/M/1", 0.8, [4]float64{1.8665, 6.2002, 12.4005, 18.6007}},
		{"D/M/1", 0.9, [4]float64{3.5896, 11.9243, 23.8486, 35.7729}},
		{"D/M/1", 0.95, [4]float64{7.0510, 23.4229, 46.8458, 70.2687}},
	} {
		t.Run(fmt.Sprintf("%s at %v", test.queue, test.rho), func(t *testing.T) {
			t.Parallel()
			// Successive times depend on each other, the more the busier the server
			// is. So the standard error is that of independent runs.
			const runs = 16
			events := 100_000
			if test.rho >= 0.9 {
				events = 200_000
			}
			var shares [4][]float64
			for run := range runs {
				var above [4]int
				next := responses(t, test.queue, test.rho, uint64(100*i+run))
				for range 20_000 { // until it has forgotten that it was idle
					next()
				}
				for range events {
					took := next()
					for q, want := range test.want {
						if took > want {
							above[q]++
						}
					}
				}
				for q, n := range above {
					shares[q] = append(shares[q], float64(n)/float64(events))
				}
			}
			for q, p := range quantiles {
				if p > 0.99 && test.rho > 0.8 {
					continue // the events beyond it come in too few groups
				}
				got, deviation := moments(shares[q])
				stderr := deviation / math.Sqrt(runs)
				if math.Abs(got-(1-p)) > 4*stderr {
					t.Errorf("%.5f of the events take longer than the quantile %v, %v; the standard error is %.5f", got, p, test.want[q], stderr)
				}
				assert.True(t, stderr <= 0.2*(1-p),
					"the share above the quantile %v has a standard error of %.5f: too large to check anything", p, stderr)
			}
		})
	}
}

// responses returns a function that returns response times, in units of the mean service time.
func responses(t *testing.T, queue string, rho float64, seed uint64) (next func() float64) {
	service := Exponential
	if queue[2] == 'D' {
		service = Constant
	}
	s := NewQueue(CapacityOptions{Server: settings(t, fmt.Sprintf("rate=1000/s,service=%s,seed=%d", service, seed))})
	rng := rand.New(rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), 99})) // not the server's own
	due := 0.0
	return func() float64 {
		gap := 1.0
		if queue[0] == 'M' {
			gap = rng.ExpFloat64()
		}
		due += gap / (1000 * rho)
		arrived := at(due)
		done, ok := s.Arrive(arrived, 1)
		assert.Must(t, ok, "refused")
		return done.Sub(arrived).Seconds() * 1000
	}
}

func moments(v []float64) (mean, deviation float64) {
	for _, x := range v {
		mean += x / float64(len(v))
	}
	squares := 0.0
	for _, x := range v {
		squares += (x - mean) * (x - mean)
	}
	return mean, math.Sqrt(squares / float64(len(v)-1))
}

// TestMeanService: each distribution has the mean that the rate says, for any number of servers.
func TestMeanService(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	for _, service := range []string{"constant", "exponential", "lognormal(0.5)", "lognormal(1.5)"} {
		for _, servers := range []int{1, 3, 64} {
			t.Run(fmt.Sprintf("%s by %d", service, servers), func(t *testing.T) {
				s := NewQueue(CapacityOptions{Server: settings(t, fmt.Sprintf("rate=3M/s,service=%s,servers=%d,queue=1m", service, servers))})
				const n = 1_000_000
				done, ok := s.Arrive(epoch, n)
				assert.Must(t, ok, "refused")
				// A saturated server serves at its rate.
				got := float64(n) / done.Sub(epoch).Seconds()
				tolerance := 0.0001
				if service != "constant" {
					tolerance = 0.02
				}
				assert.True(t, math.Abs(got/3e6-1) <= tolerance, "serves %.0f/s, want 3,000,000", got)
			})
		}
	}
	t.Run("the quantiles of lognormal", func(t *testing.T) {
		s := NewQueue(CapacityOptions{Server: settings(t, "rate=1/s,service=lognormal(0.5)")})
		var got []float64
		for range 200_000 {
			got = append(got, s.draw())
		}
		slices.Sort(got)
		for _, q := range []struct{ p, z float64 }{{0.5, 0}, {0.9, 1.28155}, {0.99, 2.32635}} {
			want := math.Exp(0.5*q.z - 0.125)
			x := got[int(q.p*float64(len(got)))]
			assert.True(t, math.Abs(x/want-1) <= 0.02, "the quantile %v is %.4f, want %.4f", q.p, x, want)
		}
	})
}

// TestConstant: with constant service times everything is exact: the capacity, and the growth of the response time above it.
func TestConstant(t *testing.T) {
	t.Parallel()
	t.Run("two servers, three events", func(t *testing.T) {
		s := NewQueue(CapacityOptions{Server: settings(t, "rate=1000/s,service=constant,servers=2")})
		for i, want := range []float64{0.002, 0.002, 0.004} {
			if done, _ := s.Arrive(epoch, 1); !done.Equal(at(want)) {
				t.Errorf("event %d is served after %v, want %v s", i, done.Sub(epoch), want)
			}
		}
		if done, _ := s.Arrive(at(0.003), 3); !done.Equal(at(0.007)) {
			t.Errorf("the last of three later events is served after %v, want 7ms", done.Sub(epoch))
		}
	})
	t.Run("no events", func(t *testing.T) {
		s := NewQueue(CapacityOptions{Server: settings(t, "rate=1000/s,service=constant")})
		done, ok := s.Arrive(at(5), 0)
		assert.True(t, ok && done.Equal(at(5)), "got %v, %v", done, ok)
	})
	t.Run("a clock that goes back", func(t *testing.T) {
		s := NewQueue(CapacityOptions{Server: settings(t, "rate=1000/s,service=constant")})
		s.Arrive(at(5), 1)
		if done, _ := s.Arrive(at(1), 1); !done.Equal(at(5.002)) {
			t.Errorf("got %v, want it served second", done.Sub(epoch))
		}
	})
	t.Run("beyond the capacity", func(t *testing.T) {
		s := NewQueue(CapacityOptions{Server: settings(t, "rate=1000/s,service=constant")})
		var done time.Time
		for i := range 10_000 {
			done, _ = s.Arrive(at(float64(i)/1250), 1)
		}
		// 10,000 events in 8 s, and 10 s of work.
		if !done.Equal(at(10)) {
			t.Errorf("served after %v, want 10s", done.Sub(epoch))
		}
	})
	t.Run("the same seed", func(t *testing.T) {
		run := func(seed int) (all []time.Time) {
			s := NewQueue(CapacityOptions{Server: settings(t, fmt.Sprintf("rate=1000/s,seed=%d", seed))})
			for i := range 100 {
				done, _ := s.Arrive(at(float64(i)/900), 1)
				all = append(all, done)
			}
			return all
		}
		assert.True(t, slices.Equal(run(1), run(1)) && !slices.Equal(run(1), run(2)),
			"a seed must repeat its service times, and another must not")
	})
	t.Run("far in the future", func(t *testing.T) {
		s := NewQueue(CapacityOptions{Server: settings(t, "rate=0.001/s,service=lognormal(4)")})
		last := epoch
		for range 50_000 {
			done, _ := s.Arrive(epoch, 1)
			assert.Must(t, !done.Before(last), "a sum of service times overflowed")
			last = done
		}
	})
}

// TestQueueBound: exactly as many events wait as the queue holds, and groups enter as a whole or not at all.
func TestQueueBound(t *testing.T) {
	t.Parallel()
	s := NewQueue(CapacityOptions{Server: settings(t, "rate=1000/s,service=constant,servers=2,queue=10")})
	steps := []struct {
		at     float64
		events int
		ok     bool
	}{
		{0, 13, false}, // two would be served and eleven would wait
		{0, 12, true},
		{0, 1, false},
		{0.0019, 1, false},
		{0.002, 3, false}, // two of those that waited are being served
		{0.002, 2, true},
		{0.002, 1, false},
		{1, 13, false},
		{1, 12, true},
	}
	for i, step := range steps {
		_, ok := s.Arrive(at(step.at), step.events)
		assert.Equal(t, ok, step.ok, "step %d", i)
	}
	s = NewQueue(CapacityOptions{Server: settings(t, "rate=1000/s,service=constant,queue=0")})
	for i, step := range []struct {
		at float64
		ok bool
	}{{0, true}, {0.0005, false}, {0.001, true}} {
		_, ok := s.Arrive(at(step.at), 1)
		assert.Equal(t, ok, step.ok, "without a queue, step %d", i)
	}
}

// TestMemory: a queue that stays long does not grow in memory.
func TestMemory(t *testing.T) {
	s := NewQueue(CapacityOptions{Server: settings(t, "rate=1000/s,service=constant,queue=1000")})
	for i := range 1_000_000 {
		s.Arrive(at(float64(i)/2000), 1)
	}
	got := cap(s.waiting.times)
	assert.True(t, got <= 10_000, "a queue of 1,000 takes room for %d", got)
}

// feed passes a constant schedule of rate to s, from a time for some seconds, and returns how many seconds the last event took.
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

// TestCredits: from full credits a saturated server serves at the higher rate for exactly as long as they say, then at its own. A
// higher rate is sustained for longer the less it exceeds the server's. Idle time brings credits back.
func TestCredits(t *testing.T) {
	t.Parallel()
	o := CapacityOptions{Server: settings(t, "rate=1000/s,service=constant,queue=1m"), Credits: Credits{For: 60 * time.Second, Rate: 2000}}
	s := NewQueue(o)
	done, _ := s.Arrive(epoch, 120_000)
	near(t, "the time for what the credits pay", done.Sub(epoch).Seconds(), 60)
	done, _ = s.Arrive(epoch, 10_000)
	near(t, "the time for what they do not pay", done.Sub(epoch).Seconds(), 70)
	// Idle for 10 s: that is 10 s at 1,000/s, which pays the 1,000/s more of 2,000/s for 10 s.
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

// TestNoFreeCredits: rounding and single services do not give a server without credits more than its rate.
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

// TestTogether: the capacity is that of the credits, warming up and a collapse together.
func TestTogether(t *testing.T) {
	t.Parallel()
	o := CapacityOptions{
		Server: settings(t, "rate=1000/s,service=constant,queue=1m"), Credits: Credits{For: time.Hour, Rate: 4000},
		Warm: 10 * time.Second, Collapse: time.Second,
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
