package find

// capacity estimates how much the system can do: more requests in flight, until it does no more.
func (s *search) capacity() (float64, error) {
	if s.From > 0 {
		return s.From / 0.5, nil // the first trial is at From
	}
	if s.To > 0 {
		return s.capacityBelow(s.To)
	}
	best := 0.0
	for _, n := range probes {
		o, err := s.try(Trial{Role: Probe, Concurrency: n, Measure: s.short(probeFor), Slot: coarse})
		if err != nil {
			return 0, err
		}
		if o.Achieved < 1.05*best {
			break
		}
		best = o.Achieved
	}
	if best <= 0 {
		why := "nothing was answered"
		if last := s.history[s.used-1]; last.Broken != "" {
			why = last.Broken
		}
		return 0, s.end(None, "%s", why)
	}
	return best, nil
}

// capacityBelow estimates the capacity with schedules, since a closed loop could exceed the highest
// rate allowed. The rates grow by a factor that leaves a short queue only.
func (s *search) capacityBelow(to float64) (float64, error) {
	const first, factor, events, enough = 4096, 8, 400, 0.9
	length := s.short(probeFor)
	for rate := max(to/first, events/length.Seconds()); rate < to/2; rate *= factor {
		o, err := s.try(Trial{Role: WarmUp, Rate: rate, Measure: length, Slot: coarse})
		if err != nil {
			return 0, err
		}
		if o.Achieved < enough*rate {
			return max(s.best, rate/factor), nil
		}
	}
	return to, nil
}

// allowed is a rate, or To if that is less.
func (s *search) allowed(rate float64) float64 {
	if s.To > 0 {
		return min(rate, s.To)
	}
	return rate
}
