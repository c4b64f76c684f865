package find

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"carronade/internal/host"
	"carronade/internal/layout"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func p99(x time.Duration) []TimeLimit {
	return []TimeLimit{{Name: "p99<" + x.String(), Within: x, Quantile: 0.99}}
}

// seeds is how many seeds a test tries: few, a fifth of them with -short, or as many as the variable says.
func seeds(t *testing.T, few int) int {
	if text := os.Getenv("CARRONADE_TEST_SEEDS"); text != "" {
		n := assert.Value(strconv.Atoi(text))(t)
		return n
	}
	return testkit.Cases(few, (few+4)/5)
}

// A tally counts the searches that answered wrongly. Chance misleads a search now and then, so one
// in twenty may be wrong: of the few seeds of make test, none.
type tally struct{ searches, wrong int }

func (c *tally) wrongf(t *testing.T, format string, args ...any) {
	t.Helper()
	c.wrong++
	t.Logf(format, args...)
}

func (c *tally) check(t *testing.T) {
	t.Helper()
	assert.True(t, c.wrong*20 <= c.searches, "%d of %d searches answered wrongly", c.wrong, c.searches)
}

// The true ceiling of queues with a closed form lies in the answered interval.
func TestClosedForms(t *testing.T) {
	for _, tt := range []struct {
		name    string
		service func(*server, float64) float64
		poisson bool
		ceiling float64 // at p99<50ms
	}{
		{"D/M/1", exponential, false, 953.21},
		{"M/M/1", exponential, true, 907.90},
		{"M/D/1", constant, true, 954.10},
		{"D/D/1", constant, false, 1000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := seeds(t, 20)
			missed, above, other, trials := 0, 0, 0, 0
			var width, elapsed, longest float64
			for seed := range n {
				s := newServer(uint64(seed), tt.service)
				s.poisson = tt.poisson
				o := &Options{Times: p99(50 * time.Millisecond), Precision: 0.02, Budget: 10 * time.Minute}
				a, history := s.find(o)
				if testing.Verbose() && seed < 1 {
					t.Logf("%+v", *a)
					for i := range history {
						h := &history[i]
						if h.Trial.Role == Probe {
							continue
						}
						t.Logf("   %-8s %8.1f/s for %v: %+v", h.Trial.Role, h.Trial.Rate, h.Trial.Measure.Round(time.Millisecond), o.Judge(*h))
					}
				}
				if a.Ending != Found {
					other++
					if other <= 3 {
						t.Logf("seed %d: %+v", seed, *a)
					}
				}
				const digits = 1e-4 // of the ceilings above
				if a.Holds > tt.ceiling*(1+digits) || a.Fails > 0 && a.Fails < tt.ceiling*(1-digits) {
					missed++
				}
				if a.HoldsConfirmed && a.Holds > tt.ceiling*(1+a.Wanted) {
					above++
				}
				trials = max(trials, len(a.Trials))
				width += a.Precision / float64(n)
				elapsed += a.Elapsed.Seconds() / float64(n)
				longest = max(longest, a.Elapsed.Seconds())
			}
			t.Logf("%d searches: %d missed, %d above, %d not found; mean width %.3f, mean %.0f s, longest %.0f s, at most %d trials", n, missed, above, other, width, elapsed, longest, trials)
			assert.True(t, missed*20 <= n && above*100 <= n && trials <= MostTrials,
				"%d of %d missed the ceiling, %d confirmed a rate above it, %d trials", missed, n, above, trials)
		})
	}
}

// reader makes the outcome of the n-th trial of a search for the ceiling of reading.
type reader func(rnd *rand.Rand, n int) Outcome

// around is a rate near 1,000,000 a second.
func around(rnd *rand.Rand, spread float64) float64 { return 1e6 * (1 + spread*rnd.NormFloat64()) }

// A search for the ceiling of reading repeats full speed until the median is known.
func TestReading(t *testing.T) {
	for _, tt := range []struct {
		name    string
		budget  time.Duration
		read    reader
		ending  Ending
		says    string
		trials  int // at least
		code    int
		atLeast float64
	}{
		{"steady", 10 * time.Minute, func(rnd *rand.Rand, _ int) Outcome { return Outcome{Achieved: around(rnd, 0.003)} }, Found, "the interval of the median of 6 trials at full speed", 7, 0, 0},
		{"at least, and it holds", 10 * time.Minute, func(rnd *rand.Rand, _ int) Outcome { return Outcome{Achieved: around(rnd, 0.003)} }, Found, "", 7, 0, 900_000},
		{"at least, and it does not hold", 10 * time.Minute, func(rnd *rand.Rand, _ int) Outcome { return Outcome{Achieved: around(rnd, 0.003)} }, Found, "", 7, 1, 1_100_000},
		{"noisy", time.Minute, func(rnd *rand.Rand, _ int) Outcome { return Outcome{Achieved: around(rnd, 0.05)} }, Found, "trials at full speed", 8, 0, 0},
		{"the generator at times", 10 * time.Minute, func(rnd *rand.Rand, n int) Outcome {
			if n%3 == 2 {
				return Outcome{Achieved: around(rnd, 0.2) / 2, Doubt: "it did not run"}
			}
			return Outcome{Achieved: around(rnd, 0.002)}
		}, Found, "the median of 6 trials", 9, 0, 0},
		{"the generator", time.Minute, func(rnd *rand.Rand, _ int) Outcome {
			return Outcome{Achieved: around(rnd, 0.002), Doubt: "the clients used 100% of 2 processors"}
		}, AtLeast, "the clients used", 7, 3, 0},
		{"a limit that does not hold", 10 * time.Minute, func(rnd *rand.Rand, _ int) Outcome {
			return Outcome{Achieved: around(rnd, 0.002), Broken: "longest-stall"}
		}, None, "longest-stall", 7, 1, 0},
		{"an empty topic", time.Minute, func(*rand.Rand, int) Outcome { return Outcome{Unclear: "nothing was read"} }, Irregular, "nothing was read", 1, 4, 0},
		{"death", time.Minute, func(rnd *rand.Rand, n int) Outcome {
			if n > 3 {
				return Outcome{Dead: "refused"}
			}
			return Outcome{Achieved: around(rnd, 0.002)}
		}, Died, "refused", 5, 2, 0},
		{"a small budget", 10 * time.Second, nil, Stopped, "the budget does not suffice: reading takes 12 trials", 0, 4, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for seed := range uint64(20) {
				rnd := rand.New(rand.NewPCG(seed, 3))
				o := &Options{Reading: true, Precision: 0.02, Budget: tt.budget}
				var history []Outcome
				var a *Answer
				for a == nil {
					var next *Trial
					if next, a = o.Next(history); a != nil {
						break
					}
					assert.Must(t, next.Rate == 0 && next.Concurrency == 0 && next.Measure >= time.Second, "got %+v", next)
					out := tt.read(rnd, len(history))
					out.Trial, out.Elapsed = *next, next.Measure
					history = append(history, out)
				}
				if a.Ending != tt.ending || !strings.Contains(a.Why, tt.says) || len(a.Trials) < tt.trials || a.ExitCode(tt.atLeast) != tt.code {
					t.Fatalf("seed %d: %+v, exit code %d", seed, *a, a.ExitCode(tt.atLeast))
				}
				if known := a.Ending == Found || a.Ending == AtLeast; known && (a.Holds < 0.9e6 || a.Fails > 1.1e6 || (a.Ending == AtLeast) != (a.Fails == 0) || a.Ending == Found && a.Holds > a.Fails) {
					t.Errorf("seed %d: %v to %v", seed, a.Holds, a.Fails)
				}
				if a.Bottleneck != nil || len(a.Trials) > MostTrials {
					t.Errorf("seed %d: %+v", seed, *a)
				}
			}
		})
	}
}

// The text of an answer of readers has no words about responses.
func TestReadingText(t *testing.T) {
	a := &Answer{
		Ending: Found, Holds: 1e6, Fails: 1.01e6, HoldsConfirmed: true, Precision: 0.01, Wanted: 0.02, Why: "the interval of the median of 6 trials at full speed",
		Trials: []Tried{
			{Trial: Trial{Role: WarmUp, Measure: time.Second}, Achieved: 5e5, Report: "aaaaaaaa"},
			{Trial: Trial{Role: Read, Measure: 30 * time.Second}, Achieved: 1e6, Report: "bbbbbbbb", Verdict: &Verdict{Result: Pass, Why: "at full speed"}},
			{Trial: Trial{Role: Read, Measure: 30 * time.Second}, Achieved: 1e6, Report: "cccccccc", Verdict: &Verdict{Result: Invalid, Why: "it did not run"}},
		}, Elapsed: time.Minute,
	}
	p := &layout.Page{}
	Head(p, "", "DONE", a.Headline(""))
	a.Details(p)
	assert.Has(t, p.String(),
		"DONE  reading 1 to 1.01 M/s\nthe interval of the median of 6 trials at full speed; 3 trials", "\n  precision     1%\n",
		"full speed     1 M/s  30 s  bbbbbbbb  counts\n", "cccccccc  invalid: it did not run\n")
}

// A server that is slower once its credits are spent, within the soak, does not sustain the lower
// end. The answer says when that was, also if the events only wait.
func TestSoakSeesCreditsThatEnd(t *testing.T) {
	const ends = 25 * 60 // s, of virtual time; the search takes at most 11 min
	for _, limit := range []time.Duration{20 * time.Millisecond, 100 * time.Millisecond} {
		c := tally{searches: seeds(t, 2)}
		for seed := range c.searches {
			s := newServer(uint64(seed), func(s *server, now float64) float64 {
				if now < ends {
					return s.rnd.ExpFloat64() * mean
				}
				return s.rnd.ExpFloat64() * mean * 1.3
			})
			a, history := s.find(&Options{Times: p99(limit), Precision: 0.02, Budget: 10 * time.Minute, Soak: 30 * time.Minute})
			last := &history[len(history)-1]
			if last.Trial.Role != Soak || last.Trial.Rate != a.Holds || a.Soak == nil || a.Soak.Result != Fail || a.ExitCode(0) != host.ExitBroken || a.ExitCode(500) != host.ExitBroken {
				c.wrongf(t, "limit %v, seed %d: %+v", limit, seed, *a)
				continue
			}
			began := s.now - last.Elapsed.Seconds() + last.Trial.Settle.Seconds()
			if off := a.Soak.Sustained.Seconds() - (ends - began); off < -60 || off > 60 {
				c.wrongf(t, "limit %v, seed %d: sustained for %v, but the credits ended after %.0f s: %+v", limit, seed, a.Soak.Sustained, ends-began, *a.Soak)
			}
			text := a.Headline("p99")
			assert.True(t, strings.Contains(text, "; sustained for ") && strings.Contains(text, ", then "), "got %q", text)
		}
		c.check(t)
	}
}

// A system that stays as it is, is not accused.
func TestSoakOfAStationarySystem(t *testing.T) {
	n := seeds(t, 5)
	accused := 0
	for seed := range n {
		s := newServer(uint64(seed), exponential)
		s.poisson = seed%2 == 0
		a, history := s.find(&Options{Times: p99(50 * time.Millisecond), Precision: 0.02, Budget: 10 * time.Minute, Soak: 30 * time.Minute})
		switch {
		case a.Ending == Found && a.Soak == nil:
			t.Errorf("seed %d: no soak: %+v", seed, *a)
		case a.Soak != nil && a.Soak.Result == Fail:
			accused++
			t.Logf("seed %d: at %.1f/s %+v", seed, a.Holds, *a.Soak)
		case a.Soak != nil && (a.Soak.Sustained != a.Soak.For || a.Ending == Found && a.ExitCode(0) != host.ExitOK):
			t.Errorf("seed %d: %+v", seed, *a.Soak)
		}
		k := len(history[len(history)-1].Slots)
		assert.True(t, k <= mostSoakSlots, "a soak has %d slots", k)
	}
	t.Logf("%d of %d searches were accused", accused, n)
	assert.True(t, accused*20 <= n, "%d of %d stationary systems did not sustain the lower end", accused, n)
}

// A backlog that grows makes a soak worse, also where no limit sees it.
func TestSoakSeesABacklog(t *testing.T) {
	o := Outcome{Trial: Trial{Role: Soak, Rate: 100, Measure: 300 * time.Second, Slot: time.Second, Relax: time.Second}, Achieved: 100}
	for i := range 300 {
		o.Slots = append(o.Slots, Slot{Events: 100, Over: []uint64{0}, Waiting: uint64(max(0, i-200)) * 10})
	}
	s := search{Options: &Options{Times: p99(time.Second)}}
	got := s.inThirds(&o)
	assert.True(t, got.Result == Fail && got.Sustained >= 200*time.Second && got.Sustained <= 260*time.Second && strings.Contains(got.text(), "the backlog grew from 0 events to "),
		"got %+v", got)
	for i := range o.Slots {
		o.Slots[i].Waiting /= 100 // less than the limit's time of work
	}
	got = s.inThirds(&o)
	assert.True(t, got.Result == Pass, "got %+v", got)
}

// A soak that is interrupted leaves the answer as it was; one in which the system dies is its end.
func TestSoakCutShort(t *testing.T) {
	s := newServer(1, constant)
	o := &Options{Times: p99(50 * time.Millisecond), Precision: 0.02, Budget: 10 * time.Minute, Soak: time.Minute}
	_, history := s.find(o)
	history = history[:len(history)-1]
	o.Interrupted = true
	if next, a := o.Next(history); next != nil || a.Ending != Found || a.Soak != nil {
		t.Errorf("got %+v and %+v", next, a)
	}
	o.Interrupted = false
	next, _ := o.Next(history)
	assert.Must(t, next != nil && next.Role == Soak, "got %+v, want the soak", next)
	_, a := o.Next(append(history, Outcome{Trial: *next, Dead: "the system ended"}))
	assert.True(t, a != nil && a.Ending == Died && a.Holds == next.Rate && a.ExitCode(0) == host.ExitFailed, "got %+v", a)
	_, a = o.Next(append(history, Outcome{Trial: *next, Generator: "the generator was slow"}))
	if a == nil || a.Soak == nil || a.Soak.Result != Invalid || a.ExitCode(0) != host.ExitCannotTell || a.ExitCode(a.Holds) != host.ExitOK || a.ExitCode(2*a.Holds) != host.ExitBroken {
		t.Errorf("got %+v", a)
	}
	a.Ending = AtLeast
	assert.Equal(t, a.ExitCode(0), host.ExitUntrusted, "exit code")
}

// While a search goes on, the interval closes, and the time left falls.
func TestProgress(t *testing.T) {
	s := newServer(1, exponential)
	o := &Options{Times: p99(50 * time.Millisecond), Precision: 0.02, Budget: 10 * time.Minute}
	a, history := s.find(o)
	assert.Must(t, a.Ending == Found, "got %+v", a)
	left := o.Budget
	for i := range history {
		p := o.Progress(history[:i+1])
		role := history[i].Trial.Role
		switch {
		case p.Left >= left, p.Left < 0, (p.Verdict == nil) != (role == Probe || role == WarmUp || role == Beyond), role != Probe && p.Precision == 0 && i+1 < len(history):
			t.Errorf("after trial %d, %s: %+v", i+1, role, p)
		case p.Holds > 0 && p.Fails > 0 && p.Holds >= p.Fails:
			t.Errorf("after trial %d: %v to %v", i+1, p.Holds, p.Fails)
		}
		left = p.Left
	}
	o.Soak = time.Minute
	next, _ := o.Next(history)
	soaked := s.run(*next, o.Times)
	soaked.Broken = "a limit"
	if p := o.Progress(append(history[:len(history):len(history)], soaked)); p.Verdict == nil || p.Verdict.Why != "a limit" {
		t.Errorf("after the soak: %+v", p)
	}
	if p := o.Progress(append(history[:len(history):len(history)], Outcome{Trial: *next, Dead: "it ended"})); p.Verdict == nil || p.Verdict.Why != "it ended" {
		t.Errorf("after a soak in which the system died: %+v", p)
	}
	planned, p := o.Progress(history[:6]), o.Progress(history)
	assert.True(t, p.Holds == a.Holds && p.Fails == a.Fails, "got %+v, want %v to %v", p, a.Holds, a.Fails)
	got := o.Plan(&planned)
	assert.True(t, strings.HasPrefix(got, "plan: an answer 6.") && strings.Contains(got, "% wide, which is what 10m allow; 2% would take "), "got %q", got)
	before := o.Progress(nil)
	got = o.Plan(&before)
	assert.True(t, got == "" && before.Text() == "at most 10m00s left", "before the first trial: %q and %q", got, before.Text())
	for _, tt := range []struct {
		p    Progress
		want string
	}{
		{Progress{Holds: 900, Fails: 1100, Left: 90 * time.Second}, "900/s to 1.1 k/s, at most 1m30s left"},
		{Progress{Holds: 1.05e6, Fails: 1.1e6, Left: 90 * time.Second}, "1.05 to 1.1 M/s, at most 1m30s left"},
		{Progress{Holds: 900, Left: 90 * time.Second}, "900/s holds, at most 1m30s left"},
		{Progress{Fails: 900}, "900/s fails, at most 0 s left"},
	} {
		assert.Equal(t, tt.p.Text(), tt.want)
	}
	assert.Equal(t, o.Plan(&Progress{Precision: 0.02}), "plan: an answer 2% wide, within 10m and 24 trials")
}
