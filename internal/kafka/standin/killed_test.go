package standin_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	kafkastandin "carronade/internal/kafka/standin"
	"carronade/internal/standin"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestMain makes the test's binary the stand-in that TestKilled spawns.
func TestMain(m *testing.M) {
	standin.Hook(kafkastandin.Kind)
	testkit.MostlyWaiting()
	os.Exit(m.Run())
}

// TestKilled kills a broker under load, twice, and starts another on its data each time. The client goes on: its batches in
// flight are sent again. At the end, each acked event must be there once, and the offset that a group committed too. The topic is
// created on demand.
func TestKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("starts and kills a server several times")
	}
	for _, args := range [][]string{nil, {"--fsync"}}[:testkit.Cases(2, 1)] {
		t.Run(fmt.Sprint(args), func(t *testing.T) { testKilled(t, args) })
	}
}

func testKilled(t *testing.T, args []string) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dir := t.TempDir()
	var addr atomic.Pointer[string] // of the broker that runs
	spawn := func() *standin.Child {
		t.Helper()
		c := assert.Value(standin.Spawn(ctx, "", append([]string{
			"kafka", "--listen", "127.0.0.1:0", "--advertise", "127.0.0.1:1", "--data-dir", dir,
		}, args...)...))(t)
		a := c.Addr()
		addr.Store(&a)
		return c
	}
	child := spawn()
	client := func(opts ...kgo.Opt) *kgo.Client {
		t.Helper()
		cl := assert.Value(kgo.NewClient(append([]kgo.Opt{
			kgo.SeedBrokers("127.0.0.1:1"), kgo.AllowAutoTopicCreation(), kgo.DefaultProduceTopic("t"),
			kgo.Dialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, *addr.Load())
			}),
		}, opts...)...))(t)
		t.Cleanup(cl.Close)
		return cl
	}

	producer := client(kgo.ProducerBatchMaxBytes(2000), kgo.MaxBufferedRecords(2000))
	first := make(chan struct{})
	var once sync.Once
	var acked atomic.Int64
	loaded, failed := make(chan int), make(chan error, 1)
	stop := make(chan struct{})
	go func() {
		n := 0
		for ; ; n++ {
			select {
			case <-stop:
				loaded <- n
				return
			default:
			}
			producer.Produce(ctx, &kgo.Record{Value: fmt.Appendf(nil, "%d", n)}, func(_ *kgo.Record, err error) {
				if err != nil {
					select {
					case failed <- err:
					default:
					}
					return
				}
				acked.Add(1)
				once.Do(func() { close(first) })
			})
		}
	}()
	<-first
	committed := kadm.Offsets{}
	committed.AddOffset("t", 0, 7, -1)
	assert.OK(t, kadm.NewClient(client()).CommitAllOffsets(ctx, "g", committed))
	for range 2 {
		for until := acked.Load() + 3000; acked.Load() < until; {
			select {
			case err := <-failed:
				t.Fatal(err)
			case <-ctx.Done():
				t.Fatalf("%d acks: %v", acked.Load(), ctx.Err())
			case <-time.After(time.Millisecond):
			}
		}
		assert.OK(t, assert.Value(os.FindProcess(child.Pid()))(t).Kill())
		<-child.Ended()
		child = spawn()
		want := "was killed; "
		assert.True(t, strings.Contains(child.Output(), want), "got output %q, want it to contain %q", child.Output(), want)
	}
	close(stop)
	produced := <-loaded
	assert.OK(t, producer.Flush(ctx))
	got := acked.Load()
	assert.Must(t, got == int64(produced), "%d of %d events were acked", got, produced)

	ends := assert.Value(kadm.NewClient(client()).ListEndOffsets(ctx, "t"))(t)
	stored := int64(0)
	ends.Each(func(o kadm.ListedOffset) { stored += o.Offset })
	assert.Equal(t, stored, int64(produced), "events stored")
	seen := make(map[string]bool)
	for consumer := client(kgo.ConsumeTopics("t")); len(seen) < produced; {
		fetches := consumer.PollFetches(ctx)
		assert.OK(t, fetches.Err(), "read after %d of %d events", len(seen), produced)
		fetches.EachRecord(func(r *kgo.Record) { seen[string(r.Value)] = true })
	}
	offsets := assert.Value(kadm.NewClient(client()).FetchOffsets(ctx, "g"))(t)
	o, _ := offsets.Lookup("t", 0)
	assert.Equal(t, o.At, 7, "the group's offset")
	assert.OK(t, child.Stop())
}
