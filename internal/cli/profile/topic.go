package profile

import (
	"cmp"
	"context"
	"fmt"

	"carronade/internal/kafka"
	"carronade/internal/kafka/wire"
	traffic "carronade/internal/profile"
	"carronade/internal/workload"
	"carronade/protocol"
	"carronade/units"
)

// readTopic reads a sample of a topic.
func (t *Tools) readTopic(ctx context.Context, f *profileFlags, source string) (sample, error) {
	count, length, err := f.limits()
	if err != nil {
		return nil, err
	}
	work, topic, err := t.sampleWork(f, source)
	if err != nil {
		return nil, err
	}
	work.Count, work.For = count, length
	return t.sample(ctx, f, work, topic)
}

// sampleWork resolves the settings of a topic.
func (t *Tools) sampleWork(f *profileFlags, source string) (work kafka.SampleWork, name string, err error) {
	w, spec, err := t.resolve(t.Topics, f, source, "op", workload.Consume)
	if err != nil {
		return work, "", err
	}
	return kafka.SampleWork{URL: w.URL, Options: spec.Options, Given: spec.Given, Logf: t.Note}, w.Target(), nil
}

// sample reads a topic and fits what was read.
func (t *Tools) sample(ctx context.Context, f *profileFlags, work kafka.SampleWork, name string) (*recordTraffic, error) {
	read, err := newSampling(f.keep)
	if err != nil {
		return nil, err
	}
	batches := traffic.KafkaBatches{To: read}
	unreadable := uint64(0)
	work.Batch = func(partition int32, b *wire.Batch, records []byte, from, to int64) {
		if batches.Add(partition, b, records, from, to) != nil {
			unreadable++
		}
	}
	r, err := kafka.Sample(ctx, work)
	if err != nil {
		if ctx.Err() != nil && read.sampler.Records() == 0 {
			return nil, context.Canceled
		}
		return nil, err
	}
	s := source{Kind: "kafka topic", Name: name, Whole: r.Whole, Available: r.Offsets, Interrupted: r.Interrupted}
	if n := r.Corrupt + unreadable; n > 0 {
		s.Warnings = append(s.Warnings, fmt.Sprintf("%s could not be read: wrong checksums or invalid records", units.Plural(n, "batch")))
	}
	if read.sampler.Records() == 0 {
		return nil, t.nothing(ctx, r, name)
	}
	return read.fit(s, r.Partitions, cmp.Or(f.to, "kafka://127.0.0.1:9092/"+r.Topic+"-profile"))
}

// nothing is the error of a sample without records.
func (t *Tools) nothing(ctx context.Context, r *kafka.SampleResult, name string) error {
	switch {
	case ctx.Err() != nil:
		return context.Canceled
	case r.Offsets == 0 && !r.Live:
		return &protocol.Error{Err: fmt.Errorf("the topic %s has no records to read", name), Hint: "check its name, --from, and whether its records have expired"}
	case r.Live:
		return &protocol.Error{Err: fmt.Errorf("nothing arrived in the topic %s while it was read", name), Hint: "read for longer (--for), or what it has already (--from earliest)"}
	}
	return &protocol.Error{Err: fmt.Errorf("the topic %s has no records that can be read, in %s", name, units.Plural(r.Offsets, "offset")), Hint: "they may belong to open or aborted transactions, be removed by compaction, or be corrupt"}
}
