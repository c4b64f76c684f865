package kafkatools

import (
	"fmt"
	"strconv"

	"carronade/internal/dropin"
)

// This file contains remarks on flags without effect and on conflicting flags.

func (o *producerOptions) remarkf(format string, args ...any) {
	o.remarks = append(o.remarks, fmt.Sprintf(format, args...))
}

// remark adds remarks on flags alone.
func (o *producerOptions) remark(given map[string][]string) {
	for _, name := range given[repeatedProducerFlags] {
		o.remarkf("%s was given more than once: the last one is used, as in the tool", name)
	}
	if hasProducerFlag(given, "--payload-delimiter") && !o.fromFile {
		o.remarkf("--payload-delimiter has no effect without --payload-file")
	}
	if o.clientGeneration == of2018 && o.transactionalID != "" && o.transactionDuration <= 0 {
		o.remarkf("--transactional-id has no effect, as in the tool of 2018, without --transaction-duration-ms")
	}
	if o.clientGeneration == of2018 && hasProducerFlag(given, "--transaction-duration-ms") && o.transactionDuration <= 0 {
		o.remarkf("--transaction-duration-ms %d has no effect, as in the tool of 2018", o.transactionDuration)
	}
	if n := producerNumber(given, "--warmup-records", 0); n < 0 {
		o.remarkf("--warmup-records %d has no effect: the run has no warm-up", n)
	}
	if within := min(max(o.interval, shortestInterval), longestInterval); o.interval > 0 && within != o.interval {
		o.remarkf("--reporting-interval %d is taken as %d", o.interval, within)
	}
	if o.throughput >= unlimitedRate {
		o.remarkf("--throughput %s is more than any client can send: taken as -1, unlimited", strconv.FormatFloat(o.throughput, 'f', -1, 64))
	}
}

// remarkConflicts adds remarks on properties that flags override.
func (o *producerOptions) remarkConflicts() {
	for _, f := range []struct{ flag, value, property string }{
		{"--bootstrap-server", o.bootstrap, "bootstrap.servers"},
		{"--transactional-id", o.transactionalID, "transactional.id"},
	} {
		if v, ok := o.client.get(f.property); ok && f.value != "" && v != f.value {
			o.remarkf("the client property %s has no effect: %s overrides it", f.property, f.flag)
		}
	}
}

// checkProducerTopic is Kafka's own check. The tool leaves it to the broker, so that each
// record fails.
func checkProducerTopic(name string) error {
	if err := CheckTopic(name); err != nil {
		return &dropin.Exception{Class: "org.apache.kafka.common.errors.InvalidTopicException", Text: err.Error()}
	}
	return nil
}
