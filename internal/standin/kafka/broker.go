package kafka

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// A broker is a kfake cluster of one node that does not listen: its connections
// are pipes from the front. So both stand-ins use the same front for TLS, counts
// and faults, and the discard broker has the topics, groups, transactions and
// admin requests of a real one.
type broker struct {
	cluster *kfake.Cluster
	ln      *pipeListener
	dir     string // to be removed at the end
	stop    chan struct{}
	done    sync.WaitGroup
}

// clusterID says which of the two stand-ins it is: a report on the discard broker
// is not about a real system.
func clusterID(opts Options) string {
	if opts.Discard {
		return "carronade-discard"
	}
	return "carronade-standin"
}

// retentionEvery is the interval at which data beyond the bound is removed.
const retentionEvery = time.Second

func startBroker(opts Options, advertise string) (*broker, error) {
	b := &broker{
		ln:   &pipeListener{addr: pipeAddr(advertise), ch: make(chan net.Conn), done: make(chan struct{})},
		stop: make(chan struct{}),
	}
	retain := fmt.Sprint(opts.Retain)
	kopts := []kfake.Opt{
		kfake.NumBrokers(1),
		kfake.ClusterID(clusterID(opts)),
		kfake.AllowAutoTopicCreation(),
		kfake.DefaultNumPartitions(opts.Partitions),
		kfake.ListenFn(func(string, string) (net.Listener, error) { return b.ln, nil }),
		kfake.GroupMinSessionTimeout(time.Second),
		kfake.BrokerConfigs(map[string]string{
			"log.retention.bytes":        retain,
			"log.segment.bytes":          fmt.Sprint(min(max(opts.Retain/4, 1<<20), 64<<20)),
			"message.max.bytes":          fmt.Sprint(opts.MaxMessage),
			"default.replication.factor": "1",
		}),
	}
	for _, t := range opts.Topics {
		kopts = append(kopts, kfake.SeedTopics(int32(t.Partitions), t.Name))
	}
	if len(opts.SASL) > 0 {
		kopts = append(kopts, kfake.EnableSASL())
		for _, u := range opts.SASL {
			kopts = append(kopts, kfake.Superuser(u.Mechanism, u.User, u.Password))
		}
	}
	if !opts.Discard && !opts.InMemory {
		dir := opts.DataDir
		if dir == "" {
			var err error
			if dir, err = os.MkdirTemp("", "carronade-standin-"); err != nil {
				return nil, fmt.Errorf("making a folder for the broker's data: %w", err)
			}
			b.dir = dir
		}
		kopts = append(kopts, kfake.DataDir(dir))
	}
	var err error
	if b.cluster, err = kfake.NewCluster(kopts...); err != nil {
		if b.dir != "" {
			os.RemoveAll(b.dir)
		}
		return nil, fmt.Errorf("starting the broker: %w", err)
	}
	b.done.Add(1)
	go b.retain()
	return b, nil
}

// retain applies the retention, which kfake leaves to the program that embeds it.
// Without it, the broker's data would grow without bound.
func (b *broker) retain() {
	defer b.done.Done()
	tick := time.NewTicker(retentionEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			b.cluster.ApplyRetention()
		case <-b.stop:
			return
		}
	}
}

func (b *broker) close() error {
	close(b.stop)
	b.done.Wait()
	b.cluster.Close()
	if b.dir != "" {
		if err := os.RemoveAll(b.dir); err != nil {
			return fmt.Errorf("removing the broker's data: %w", err)
		}
	}
	return nil
}

// dial opens a connection to the broker for a client at remote.
func (b *broker) dial(remote net.Addr) (net.Conn, error) {
	here, there := pipe(remote, b.ln.addr)
	select {
	case b.ln.ch <- there:
		return here, nil
	case <-b.ln.done:
		return nil, net.ErrClosed
	}
}

// exchange writes a frame and reads the answer, a frame too.
func exchange(rw io.ReadWriter, frame []byte) ([]byte, error) {
	if _, err := rw.Write(frame); err != nil {
		return nil, err
	}
	var size [4]byte
	if _, err := io.ReadFull(rw, size[:]); err != nil {
		return nil, err
	}
	answer := make([]byte, 4+binary.BigEndian.Uint32(size[:]))
	copy(answer, size[:])
	_, err := io.ReadFull(rw, answer[4:])
	return answer, err
}
