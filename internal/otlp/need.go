package otlp

import (
	"cmp"
	"strconv"

	"carronade/internal/place"
	"carronade/protocol"
)

// clientBytes is what a connection takes, as APM's do.
const clientBytes = 6 << 10

// Needs are what a run takes of the machine. A request in flight takes a copy.
func (Kind) Needs(s protocol.Spec) []protocol.Need {
	v := s.Options
	fallback, _ := strconv.Atoi(defaultClients)
	clients := cmp.Or(v.Int("clients"), s.Concurrency, fallback)
	connection := protocol.Need{Setting: "clients", Number: int64(s.Portion.Clients(clients)), Bytes: clientBytes, Files: 1}
	if !v.Has("clients") && s.Concurrency > 0 {
		connection.Setting = "concurrency"
	}
	if file := v.String("corpus"); file != "" {
		corpus := protocol.Need{Setting: "corpus", Number: 1}
		if info, err := place.Stat(file); err == nil && info.Mode().IsRegular() {
			corpus.Bytes = min(info.Size()/4, mostCorpus) // JSON takes several times as many bytes
		}
		return []protocol.Need{corpus, connection}
	}
	p, err := newPool(v, s, false)
	if err != nil {
		return nil // Open says why
	}
	each := int64(len(p.content.Make(p.signals()[0], 0, 1).Bytes))
	return []protocol.Need{{Setting: "events", Number: int64(p.events), Bytes: each / 2}, connection}
}
