package null

import (
	"carronade/payload"
	"carronade/protocol"
)

// Prices, in bytes of resident memory beyond that of one client, measured on Linux (amd64):
// 50,000 clients with batches of 1 KiB take 155 MiB more than one; 1,000 with the defaults 1,397 MiB more, of
// which the pools are 1,000 MiB and the buffers for the next batch 281 MiB.
const (
	clientBytes  = 3 << 10
	scratchTimes = 1.125 // of a batch, see template
)

// Needs is what the pools of the clients take.
func (Kind) Needs(s protocol.Spec) []protocol.Need {
	o := s.Options
	batch := max(1024, o.Size("batch-size"))
	pool := max(batch, o.Size("pool")) // at least one batch
	event := int64(payload.MeanSizeOf(o.String("size"), s.Seed))
	of := protocol.NeedSize{Setting: "pool", Bytes: pool}
	switch {
	case event > pool: // an event is never cut
		of = protocol.NeedSize{Setting: "size", Bytes: event}
	case batch == pool:
		of.Setting = "batch-size"
	}
	scratch := protocol.NeedSize{Setting: "batch-size", Bytes: batch, Times: scratchTimes}
	if event > batch {
		scratch = protocol.NeedSize{Setting: "size", Bytes: event, Times: scratchTimes}
	}
	return []protocol.Need{
		{Setting: "clients", Number: int64(s.Portion.Clients(max(1, o.Int("clients")))), Bytes: clientBytes, Sizes: []protocol.NeedSize{of, scratch}},
		{Setting: "payload", Number: 1, Bytes: payload.Held(o.String("payload"))},
	}
}
