package mongoose

// warnIneffective warns of options that would have an effect on the work, but have
// none besides other given options.
func (s *step) warnIneffective(warn func(string, ...any)) {
	const limit = "--storage-driver-limit-concurrency"
	writes, makes := s.work == writeRecords, s.work == onTopics && s.topicOp == "create"
	inOrder := s.namingType() != "random"
	for _, o := range []struct {
		name        string
		ineffective bool
		why         string
	}{
		{"load-batch-size", writes && s.concurrency > 0 && !(s.lingers() && s.strict), "records are sent one by one; the number in flight is " + limit + "; 0 means no limit, and batches"},
		{"load-batch-size", writes && s.concurrency == 0 && s.rate > 0 && !s.strict, "records are sent when they are due, in batches of those that are due"},
		{"load-batch-size", writes && s.concurrency == 0 && (s.rate == 0 || s.strict) && s.v.number("storage-driver-batch-size") > 0, "--storage-driver-batch-size sets the size of batches"},
		{"load-batch-size", s.work == onTopics && (s.rate > 0 || s.topicOp != "create" && s.topicOp != "delete"), "a request is for one topic"},
		{"storage-driver-batch-size", writes && s.concurrency > 0 && !s.lingers(), "records are sent one by one; the number in flight is " + limit + "; 0 means no limit, and batches"},
		{"storage-net-linger", writes && s.rate == 0 && s.concurrency == 0, "without a limit of the records in flight, a batch is full before they wait"},
		{"storage-net-linger", writes && s.rate > 0 && s.concurrency > 0 && s.v.number("storage-net-linger") > 0, "with a rate, records wait for others only without a limit of those in flight: " + limit + "=0"},
		{"storage-driver-record-timeoutMillis", writes && s.strict, "mongoose's driver applies it to reading only, and --strict reproduces that"},
		{"item-data-input-seed", s.v.text("item-data-input-file") != "", "the data are those of --item-data-input-file"},
		{"storage-driver-record-timeoutMillis", s.single(), "the records are those that the topic has when the step begins"},
		{"storage-driver-read-timeoutMillis", s.single(), "the records are those that the topic has when the step begins"},
		{"item-input-path", len(s.items) > 0 && s.v.text("item-input-file") != "", "--item-input-file names what is read"},
		{"item-input-path", s.work == onTopics && (s.topicOp == "create" || s.topicOp == "list"), "no list is read: --item-naming-prefix and --item-input-file name topics to create"},
		{"item-input-file", s.work == onTopics && s.topicOp == "list", "all topics are listed"},
		{"load-op-wait-limit", writes && !s.v.flag("load-op-wait-finish"), "--load-op-wait-finish=false waits for nothing"},
		{"storage-driver-create-headers", writes && s.strict, "mongoose sends none, and --strict reproduces that"},
		{"storage-driver-record-headers", writes && s.strict, "mongoose sends none, and --strict reproduces that"},
		{"output-metrics-average-table-header-period", s.strict, "it is 20 in mongoose, and --strict reproduces that"},
		{"load-op-recycle", s.work == onTopics && s.topicOp != "read", "a topic is created or deleted once"},
		{"load-op-recycle-mode", s.work == onTopics && s.topicOp != "read", "a topic is created or deleted once"},
		{"item-naming-step", !inOrder, "names at random have no step: --item-naming-type=serial"},
		{"output-metrics-threshold", s.threshold > 0 && s.concurrency == 0, "it is a share of " + limit + ", which has no limit"},
	} {
		if o.ineffective && s.v.has(o.name) {
			warn("--%s does nothing: %s", o.name, o.why)
		}
	}
	for _, name := range []string{"length", "prefix", "radix", "seed", "step", "type"} {
		switch name = "item-naming-" + name; {
		case !s.v.has(name):
		case s.work == onTopics && (!makes || len(s.items) > 0):
			warn("--%s does nothing: topics have their names already", name)
		}
	}
}
