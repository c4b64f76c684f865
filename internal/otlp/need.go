package otlp

import (
	"carronade/internal/conn/web"
	"carronade/internal/place"
	"carronade/protocol"
)

// Needs are what a run takes of the machine: at least a request and the copy of it that is sent.
func (Kind) Needs(s protocol.Spec) []protocol.Need {
	v := s.Options
	connection := web.ConnectionNeed(s)
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
	return []protocol.Need{{Setting: "events", Number: int64(p.events), Bytes: 2 * p.least() / int64(p.events)}, connection}
}
