package workload

import (
	"cmp"
	"errors"
	"math"
	"time"

	"carronade/load"
	"carronade/payload"
	"carronade/protocol"
	"carronade/units"
)

// schedule builds the schedule including the warm-up, and returns the warm-up's length; nil
// without a rate or a shape. The warm-up runs at the initial rate of a shape.
func (w *Workload) schedule() (load.Schedule, time.Duration, error) {
	warm, events, err := w.warmup()
	if err != nil {
		return nil, 0, err
	}
	if text := w.String("rate"); text != "" {
		rate := w.rate()
		s := load.Constant(rate)
		if events > 0 {
			warm = s.Due(events)
		}
		return s, warm, nil
	}
	if len(w.parts) > 0 && w.parts[0].Paced {
		return w.pacedParts(warm)
	}
	text := w.String("shape")
	if text == "" {
		return nil, warm, nil
	}
	shape, err := load.ParseShapeSeed(text, w.Seed())
	if err != nil {
		return nil, 0, err
	}
	if warm == 0 && events == 0 {
		return shape, 0, nil
	}
	rate := shape.Rate(0)
	if load.CheckRate(rate) != nil {
		rate = float64(shape.Count(time.Second))
	}
	if load.CheckRate(rate) != nil {
		return nil, 0, &protocol.Error{
			Err:  errors.New("cannot precede a shape that begins at rate 0"),
			Hint: "put the warm-up into the shape: constant(1k/s):2s+...",
		}
	}
	before := load.Constant(rate)
	if events > 0 {
		warm = before.Due(events)
	}
	return load.Joined(load.Until(before, warm), shape), warm, nil
}

// pacedParts is the schedule of all parts together.
func (w *Workload) pacedParts(warm time.Duration) (load.Schedule, time.Duration, error) {
	var all []load.Schedule
	for i := range w.parts {
		s, _, err := w.parts[i].Workload.schedule()
		if err != nil {
			return nil, 0, err
		}
		all = append(all, s)
	}
	return load.Union(all...), warm, nil
}

func (w *Workload) warmup() (time.Duration, uint64, error) {
	if !w.Has("warmup") {
		return 0, 0, nil
	}
	return parseWarmup(w.String("warmup"))
}

func (w *Workload) rate() float64 { return parsed(w, "rate", units.ParseRate) }

func (w *Workload) share(name string) float64 { return parsed(w, name, units.ParseShare) }

// Plan returns the engine's plan, with a new schedule on each call.
func (w *Workload) Plan() (load.Plan, error) {
	s, warm, err := w.schedule()
	if err != nil {
		return load.Plan{}, err
	}
	p := load.Plan{
		Schedule:    s,
		Concurrency: int(w.Count("concurrency")),

		MaxInFlight: w.inFlight(),
		BatchEvents: int(w.Count("batch-events")),
		Linger:      w.Duration("linger"),
		BufferBytes: w.bufferMemory(),
		EventBytes:  w.eventBytes(),

		WarmupTime: warm,
		Measurement: load.Limits{
			Time:   w.Duration("for"),
			Events: w.Count("count"), AtMost: w.Bool("count-at-most"),
			Bytes: uint64(w.size("bytes")),
		},
		Drain:    w.Duration("drain"),
		Interval: w.Duration("interval"),
		Retry:    int(w.Count("retry")),
		Threads:  int(w.Count("threads")),
		Ends:     w.Has("backlog"),
	}
	p.Measurement.Failures = w.Count("failures")
	if w.Has("failure-rate") {
		p.Measurement.FailureRate = w.share("failure-rate")
	}
	if w.String("overload") == "drop" {
		p.Overload = load.Drop
	}
	if s == nil {
		if _, p.WarmupEvents, err = w.warmup(); err != nil {
			return load.Plan{}, err
		}
	}
	if w.Has("shape") {
		// Use only the shape: joined with a warm-up, the warm-up would be a step.
		shape, err := load.ParseShapeSeed(w.String("shape"), w.Seed())
		if err != nil {
			return load.Plan{}, err
		}
		if st, ok := shape.(load.Stepped); ok {
			p.Steps = st.Steps()
		}
	}
	// The in-flight limit is per connection, concurrency is for the whole run. With the
	// default limit and few connections, a closed loop must not turn into a queue.
	if p.Concurrency > p.MaxInFlight && !w.Given("max-in-flight") {
		p.MaxInFlight = p.Concurrency
	}
	// A caller of a round trip waits for its event, so its batch is one.
	if p.Concurrency > 0 && w.Op == RoundTrip && !w.Has("batch-events") {
		p.BatchEvents = 1
	}
	return p, nil
}

// RunInFlight is how many batches the clients of a run have in flight together, unless the user chose
// another limit for each connection: with the default of each, a thousand clients would have a
// thousand times as many. But each may have leastInFlight: with fewer, a client reads each answer at
// once, to have room for its next batch, which takes a quarter more CPU at a thousand clients.
const (
	RunInFlight   = 1000
	leastInFlight = 5
)

// InFlightEach is the default limit of each connection of a client, if that of a single client is one.
func InFlightEach(one, clients uint64) uint64 {
	return min(one, max(leastInFlight, RunInFlight/max(1, clients)))
}

// inFlight is how many batches may be in flight on a connection.
func (w *Workload) inFlight() int {
	n := w.Count("max-in-flight")
	if w.usualInFlight() {
		n = InFlightEach(n, w.Count("clients"))
	}
	return int(n)
}

// usualInFlight reports whether the limit is the default. The workload of a report states all defaults.
func (w *Workload) usualInFlight() bool {
	v := w.values["max-in-flight"]
	return v.from <= FromPreset || v.from == FromFile && w.String("max-in-flight") == cmp.Or(w.presetInFlight, find(w.table, "max-in-flight").Default)
}

// ReadPlan returns the engine's plan for consuming.
func (w *Workload) ReadPlan() (load.ReadPlan, error) {
	p, err := w.Plan()
	if err != nil {
		return load.ReadPlan{}, err
	}
	return load.ReadPlan{
		Warmup: p.WarmupTime, Measurement: p.Measurement, Interval: p.Interval,
		Idle: w.IdleTimeout(), Ends: w.Bool("until-end"),
	}, nil
}

// Spec returns the target's configuration. The caller sets RunID and Logf.
func (w *Workload) Spec() (protocol.Spec, error) {
	p, err := w.Plan()
	if err != nil {
		return protocol.Spec{}, err
	}
	s := protocol.Spec{
		URL:     w.URL,
		Op:      w.Op,
		Options: w.options(),
		Given:   make(map[string]bool),
		Seed:    w.Seed(),

		Scheduled:   p.Schedule != nil,
		BatchEvents: p.BatchEvents,
		MaxInFlight: p.MaxInFlight,
		Concurrency: p.Concurrency,
		Linger:      p.Linger,
		Verify:      w.Verify(),
		RoundTrip:   w.Op == RoundTrip,
		Groups:      w.Groups(),
		Members:     int(max(1, w.Count("members"))),
		Count:       p.Measurement.Events,
		Clients:     int(min(max(1, w.Count("clients")), math.MaxInt)),

		Logf: func(string, ...any) {},
	}
	s.Most, s.Length = extent(&p)
	// A preset does not count as given by the user.
	for name, v := range w.values {
		s.Given[name] = v.from > FromPreset
	}
	return s, nil
}

// extent returns the maximum number of events and the length of a plan; 0 if unknown.
func extent(p *load.Plan) (events uint64, length time.Duration) {
	if p.Schedule == nil {
		if p.Measurement.Events > 0 && p.WarmupTime == 0 {
			events = p.WarmupEvents + p.Measurement.Events
		}
		if p.Measurement.Time > 0 && p.WarmupEvents == 0 {
			length = p.WarmupTime + p.Measurement.Time
		}
		return events, length
	}
	end := p.Schedule.End()
	if p.Measurement.Time > 0 {
		end = min(end, p.WarmupTime+p.Measurement.Time)
	}
	if end != load.Never {
		events, length = p.Schedule.Count(end), end
	}
	if p.Measurement.Events > 0 {
		// The warm-up's events come on top.
		if n := p.Schedule.Count(p.WarmupTime) + p.Measurement.Events; events == 0 || n < events {
			events, length = n, p.Schedule.Due(n-1)
		}
	}
	return events, length
}

func (w *Workload) size(name string) int64 { return parsed(w, name, units.ParseSize) }

func (w *Workload) bufferMemory() int64 {
	if s := find(w.table, "buffer-memory"); s == nil || s.Type != protocol.Size || !w.Has("buffer-memory") {
		return 0
	}
	return w.size("buffer-memory")
}

// eventBytes is the mean size of an event, 0 if unknown. Only the limit on queued bytes needs
// it.
func (w *Workload) eventBytes() float64 {
	if w.bufferMemory() == 0 || !w.Has("size") {
		return 0
	}
	return payload.MeanSizeOf(w.String("size"), w.Seed()) // the target reports the errors
}
