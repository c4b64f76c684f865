package omb

import (
	"errors"
	"fmt"
	"io/fs"
	"math"

	"carronade/internal/advice"
	"carronade/internal/place"
)

// A spec is a workload file.
type spec struct {
	file, name, stem             string
	topics, partitions           int
	keys                         string
	size                         int
	payload                      string // a file; "": none
	random                       bool
	ratio                        float64 // of random bytes in a message
	pool                         int     // different messages
	groups, producers, consumers int     // of each topic; consumers of each group
	rate                         int     // 0: search it
	backlog, drained             float64 // GiB, and the share of it that is to be drained
	lasts, warmup                float64 // minutes
}

// The distributors of keys.
const (
	noKey         = "NO_KEY"
	keyRoundRobin = "KEY_ROUND_ROBIN"
	randomNano    = "RANDOM_NANO"
)

// Java's int is the type of most fields.
const mostInt = math.MaxInt32

// readSpec reads a workload file. Warnings go to warn.
func readSpec(file string, warn func(string)) (*spec, error) {
	s := &spec{file: file, stem: stem(file), keys: noKey, drained: 1, warmup: 1}
	var (
		class string
		later []string // warnings, of no use for a driver file
	)
	err := readFile(file, []field{
		text("name", &s.name),
		whole("topics", &s.topics, mostInt),
		whole("partitionsPerTopic", &s.partitions, mostInt),
		oneOf("keyDistributor", &s.keys, noKey, keyRoundRobin, randomNano),
		whole("messageSize", &s.size, mostInt),
		text("payloadFile", &s.payload),
		yesOrNo("useRandomizedPayloads", &s.random),
		amount("randomBytesRatio", &s.ratio, 1),
		whole("randomizedPayloadPoolSize", &s.pool, mostInt),
		whole("subscriptionsPerTopic", &s.groups, mostInt),
		whole("producersPerTopic", &s.producers, mostInt),
		whole("consumerPerSubscription", &s.consumers, mostInt),
		whole("producerRate", &s.rate, mostInt),
		amount("consumerBacklogSizeGB", &s.backlog, 1<<30),
		amount("backlogDrainRatio", &s.drained, 1),
		amount("testDurationMinutes", &s.lasts, 365*24*60),
		amount("warmupDurationMinutes", &s.warmup, 24*60),
		text("driverClass", &class),
	}, func(text string) { later = append(later, text) })
	if err != nil {
		return nil, err
	}
	if class != "" {
		return nil, &advice.Error{Err: fmt.Errorf("%s is a driver file, not a workload", file), Hint: "give it with --drivers"}
	}
	for _, text := range later {
		warn(text)
	}
	if s.name == "" {
		s.name = s.stem
	}
	return s, s.check()
}

// check refuses what the tool cannot run, or would wait for without end.
func (s *spec) check() error {
	missing := func(name, example string) error {
		return &advice.Error{Err: fmt.Errorf("%s: %s is missing, or 0", s.file, name), Hint: "add " + name + ": " + example}
	}
	switch {
	case s.topics == 0:
		return missing("topics", "1")
	case s.partitions == 0:
		return missing("partitionsPerTopic", "1")
	case s.size == 0:
		return missing("messageSize", "1024")
	case s.producers == 0:
		return missing("producersPerTopic", "1")
	case s.groups > 0 && s.consumers == 0:
		return missing("consumerPerSubscription", "1")
	case s.backlog > 0 && s.groups == 0:
		return missing("subscriptionsPerTopic", "1, since consumerBacklogSizeGB is for consumers")
	case s.backlog > 0 && s.rate == 0:
		return &advice.Error{Err: fmt.Errorf("%s: a backlog cannot be built while the rate is searched (producerRate: 0)", s.file), Hint: "give the rate: producerRate: 100000"}
	case s.random && s.pool == 0:
		return missing("randomizedPayloadPoolSize", "1000, for useRandomizedPayloads")
	case s.random:
		return nil
	}
	return s.checkPayload()
}

// checkPayload checks the file with the message.
func (s *spec) checkPayload() error {
	const instead = "useRandomizedPayloads: true, randomBytesRatio: 0.5 and randomizedPayloadPoolSize: 1000 need no file"
	if s.payload == "" {
		return &advice.Error{Err: fmt.Errorf("%s: payloadFile is missing", s.file), Hint: "name a file of " + fmt.Sprint(s.size) + " bytes, or: " + instead}
	}
	info, err := place.Stat(s.payload)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &advice.Error{
			Err:  fmt.Errorf("%s: payloadFile %s does not exist", s.file, s.payload),
			Hint: fmt.Sprintf("run in the folder in which OMB has its payload folder, or make the file: head -c %d /dev/urandom > %s, or: %s", s.size, s.payload, instead),
		}
	case err != nil:
		return fmt.Errorf("%s: payloadFile: %w", s.file, err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s: payloadFile %s is not a file", s.file, s.payload)
	case info.Size() != int64(s.size):
		return &advice.Error{
			Err: fmt.Errorf("%s: payloadFile %s has %d bytes, and messageSize is %d", s.file, s.payload, info.Size(), s.size), Hint: "give both the same size",
		}
	}
	return nil
}
