package standin

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"

	"carronade/internal/host"
	"carronade/internal/standin"
)

// A broker is a kfake cluster of one node that does not listen: its connections
// are pipes from the front. So both stand-ins use the same front for TLS, counts
// and faults, and the discard broker has the topics, groups, transactions and
// admin requests of a real one.
type broker struct {
	cluster *kfake.Cluster
	ln      *pipeListener
	dir     string   // to be removed at the end
	lock    *os.File // of the user's folder, held until the end; nil: none
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
	if len(opts.SASL) > 0 {
		kopts = append(kopts, kfake.EnableSASL())
		for _, u := range opts.SASL {
			kopts = append(kopts, kfake.Superuser(u.Mechanism, u.User, u.Password))
		}
	}
	var dir string
	if !opts.Discard && !opts.InMemory {
		var err error
		if dir, err = b.dataDir(opts); err != nil {
			_ = b.removeData()
			return nil, err
		}
		kopts = append(kopts, kfake.DataDir(dir))
		if opts.Fsync {
			kopts = append(kopts, kfake.SyncWrites())
		}
	}
	var err error
	if b.cluster, err = kfake.NewCluster(kopts...); err != nil {
		_ = b.removeData()
		return nil, fmt.Errorf("starting the broker: %w", err)
	}
	for _, t := range opts.Topics {
		if err := b.createTopic(t.Name, t.Partitions); err != nil {
			b.cluster.Close()
			_ = b.removeData()
			return nil, err
		}
	}
	if dir != "" {
		if err := os.Remove(filepath.Join(dir, windowsFile)); err != nil {
			b.cluster.Close()
			_ = b.removeData()
			return nil, fmt.Errorf("starting the broker: %w", err)
		}
	}
	standin.Logf(opts.Log, "%s", survives(opts, dir))
	if !opts.Discard { // it keeps nothing
		b.done.Go(b.retain)
	}
	return b, nil
}

// survives says where the data are, and what they survive. With fsync a batch is on
// the disk before its ack; else it is with the kernel, which outlives the process.
func survives(opts Options, dir string) string {
	switch {
	case opts.Discard:
		return "the data are discarded"
	case opts.InMemory:
		return "the data are in memory, until the end of this process"
	case opts.DataDir == "":
		return "the data are in " + dir + ", until the stand-in stops; --data-dir keeps them"
	case opts.Fsync:
		return "the data are in " + dir + "; acked events survive kill -9, and each batch is flushed to the disk before its ack (--fsync)"
	default:
		return "the data are in " + dir + "; acked events survive kill -9, but not a power failure (see --fsync)"
	}
}

// dataDir makes the folder for the broker's data, or recovers what is in it.
func (b *broker) dataDir(opts Options) (string, error) {
	dir := opts.DataDir
	if dir == "" {
		var err error
		if b.dir, err = os.MkdirTemp("", "carronade-standin-"); err != nil {
			return "", fmt.Errorf("making a folder for the broker's data: %w", err)
		}
		return b.dir, nil
	}
	// kfake also writes the logins.
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("making the folder for the broker's data: %w", err)
	}
	if err := b.lockDir(dir); err != nil {
		return "", err
	}
	if err := recoverData(dir, opts.Log); err != nil {
		return "", fmt.Errorf("reading the broker's data in %s: %w", dir, err)
	}
	// The logins are those of the options, not those of an earlier broker.
	if err := os.Remove(filepath.Join(dir, "sasl.json")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("reading the broker's data in %s: %w", dir, err)
	}
	return dir, nil
}

// lockDir makes sure that only one broker uses a folder: two would overwrite each other's
// events, and one would take the files of the other for those of a killed one.
func (b *broker) lockDir(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("locking the folder for the broker's data: %w", err)
	}
	switch ok, err := host.TryLock(f, false); {
	case err != nil:
		_ = f.Close()
		return fmt.Errorf("locking the folder for the broker's data: %w", err)
	case !ok:
		_ = f.Close()
		return fmt.Errorf("another stand-in uses the folder %s: stop it, or give another --data-dir", dir)
	}
	b.lock = f
	return nil
}

// createTopic creates a topic; it is not an error if it exists with as many
// partitions. kfake writes down the topics that are created in this way, but not
// those that it creates on demand.
func (b *broker) createTopic(name string, partitions int) error {
	err := b.cluster.CreateTopic(name, int32(partitions), nil)
	if errors.Is(err, kerr.TopicAlreadyExists) {
		if has := len(b.cluster.PartitionInfos(name)); partitions > 0 && has != partitions {
			return fmt.Errorf("topic %s exists with %d partitions, not %d: leave out --topic, or use another --data-dir", name, has, partitions)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("creating topic %s: %w", name, err)
	}
	return nil
}

// retain applies the retention, which kfake leaves to the program that embeds it.
// Without it, the broker's data would grow without bound.
func (b *broker) retain() {
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
	return b.removeData()
}

// removeData removes the temporary folder, and releases the user's.
func (b *broker) removeData() error {
	if b.lock != nil {
		_ = host.CloseLocked(b.lock)
	}
	if b.dir == "" {
		return nil
	}
	if err := os.RemoveAll(b.dir); err != nil {
		return fmt.Errorf("removing the broker's data: %w", err)
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
