package mongoose

// warnIdle speaks of options that mean something for the work, and nothing beside
// others that were given.
func (s *step) warnIdle(warn func(string, ...any)) {
	const limit = "--storage-driver-limit-concurrency"
	writes, makes := s.work == creating, s.work == topical && s.on == "create"
	named := s.keyed || s.trace || s.v.has("item-output-file") || makes && len(s.items) == 0
	for _, o := range []struct {
		name string
		idle bool
		why  string
	}{
		{"load-batch-size", writes && s.limitC > 0, "records go one by one, as many at once as " + limit + " says; 0 is without limit, and in batches"},
		{"load-batch-size", writes && s.limitC == 0 && s.rate > 0, "records go when they are due, as many together as have gathered"},
		{"load-batch-size", writes && s.limitC == 0 && s.rate == 0 && s.v.number("storage-driver-batch-size") > 0, "--storage-driver-batch-size says how large batches are"},
		{"load-batch-size", s.work == topical && (s.rate > 0 || s.on != "create" && s.on != "delete"), "a request is for one topic"},
		{"storage-driver-batch-size", writes && s.limitC > 0, "records go one by one, as many at once as " + limit + " says; 0 is without limit, and in batches"},
		{"storage-net-linger", writes && s.rate == 0, "records wait for others only where --load-op-limit-rate spreads them"},
		{"item-data-size", writes && s.v.text("item-data-input-file") != "", "a record is a line of --item-data-input-file"},
		{"item-input-path", len(s.items) > 0 && s.v.text("item-input-file") != "", "--item-input-file says what is read"},
		{"load-op-recycle", s.work == topical && s.on != "read", "a topic is made or deleted once"},
		{"load-op-recycle-mode", s.work == topical && s.on != "read", "a topic is made or deleted once"},
		{"item-naming-length", (writes || makes) && !named, "no name is seen: records have no keys, and there is no trace or list"},
		{"item-naming-prefix", (writes || makes) && !named, "no name is seen: records have no keys, and there is no trace or list"},
		{"item-naming-radix", (writes || makes) && !named, "no name is seen: records have no keys, and there is no trace or list"},
		{"item-naming-seed", (writes || makes) && !named, "no name is seen: records have no keys, and there is no trace or list"},
		{"item-naming-step", (writes || makes) && !named, "no name is seen: records have no keys, and there is no trace or list"},
		{"item-naming-type", (writes || makes) && !named, "no name is seen: records have no keys, and there is no trace or list"},
		{"item-naming-prefix", s.keyed, "keys are digits alone, in order from 0 or at random"},
		{"item-naming-seed", s.keyed, "keys are digits alone, in order from 0 or at random"},
		{"item-naming-step", s.keyed, "keys are digits alone, in order from 0 or at random"},
		{"output-metrics-threshold", s.threshold > 0 && s.limitC == 0, "it is a share of " + limit + ", which has no limit"},
	} {
		if o.idle && s.v.has(o.name) {
			warn("--%s does nothing: %s", o.name, o.why)
		}
	}
}
