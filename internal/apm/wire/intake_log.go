package wire

import (
	"cmp"
	"strconv"
)

// logLine writes a log record, with the names with dots that ECS loggers write.
// It has none of error.*: the server would make an error of it. Its ids and its
// time are adjacent, as those of other events.
func (b *builder) logLine(i int) {
	l, owner := b.cause(i)
	at := &b.agent.frames[b.rng.IntN(len(b.agent.frames))]
	b.raw(`{"log":{"trace.id":`)
	b.id(formTrace, l.back, l.trace)
	b.raw(`,"transaction.id":`)
	b.id(formID, 0, owner)
	b.raw(`,"@timestamp":`)
	b.reserve(formMicro, 0, uint64(-b.rng.Int64N(1000000)))
	level := *one(b.rng, levels)
	b.field("log.level", level)
	message := *one(b.rng, messages)
	if level == levelError {
		message = "request failed: " + one(b.rng, failures).message
	}
	b.field("message", message+" request="+strconv.Itoa(b.rng.IntN(1000000)))
	logger := at.module
	logger = cmp.Or(logger, b.service)
	b.field("log.logger", logger)
	b.field("log.origin.file.name", at.file)
	b.field("log.origin.function", at.function)
	b.key("log.origin.file.line")
	b.int(int64(1 + b.rng.IntN(1400)))
	b.field("process.thread.name", "worker-"+strconv.Itoa(b.rng.IntN(32)))
	b.field("event.dataset", b.service+".log")
	b.raw(`,"labels":{"tier":"gold"`)
	b.labels()
	b.raw("}}}\n")
	b.counts[Log]++
}

const levelError = "ERROR"

var (
	levels   = []string{"INFO", "INFO", "INFO", "INFO", "DEBUG", "DEBUG", "WARN", levelError}
	messages = []string{
		"order placed",
		"cart loaded",
		"price of product 48211 is from the cache",
		"customer 5512 logged in",
		"stock reserved",
		"mail queued",
		`search for "lamp" answered`,
		"connection to db.example.internal taken from the pool",
	}
)
