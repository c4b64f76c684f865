package standin

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// both runs a test against both stand-ins.
func both(t *testing.T, f func(t *testing.T, opts KafkaOptions)) {
	t.Run("broker", func(t *testing.T) { f(t, KafkaOptions{Listen: "127.0.0.1:0", InMemory: true}) })
	t.Run("discard", func(t *testing.T) { f(t, KafkaOptions{Listen: "127.0.0.1:0", Discard: true}) })
}

func start(t *testing.T, opts KafkaOptions) Server {
	t.Helper()
	s, err := Start(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("closing the stand-in: %v", err)
		}
	})
	return s
}

func client(t *testing.T, s Server, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(s.Addr()), kgo.AllowAutoTopicCreation(), kgo.DefaultProduceTopic("t"),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestProduce(t *testing.T) {
	both(t, func(t *testing.T, opts KafkaOptions) {
		s := start(t, opts)
		cl := client(t, s)
		var records []*kgo.Record
		for i := range 5000 {
			records = append(records, &kgo.Record{Value: fmt.Appendf(nil, "value %d", i)})
		}
		if err := cl.ProduceSync(deadline(t), records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if got := s.Counts().Events; got != 5000 {
			t.Errorf("got %d events counted, want 5000", got)
		}
	})
}
