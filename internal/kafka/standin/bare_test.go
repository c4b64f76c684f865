package standin

import (
	"encoding/binary"
	"fmt"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// For benchmarks, which spawn the stand-in and therefore cannot be part of the
// package.
var (
	Bare         = bare
	FrameOf      = frameOf
	ProduceFrame = produceFrame
)

// produceFrame is a produce request, version 12, with one batch of the given
// records and size each.
func produceFrame(topic string, partition int32, records, size int) []byte {
	batch := newSynthetic(records, size, time.UnixMilli(1)).data
	req := kmsg.NewPtrProduceRequest()
	req.SetVersion(12)
	req.Acks, req.TimeoutMillis = 1, 30000
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic = topic
	rp := kmsg.NewProduceRequestTopicPartition()
	rp.Partition, rp.Records = partition, batch
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	return frameOf(req)
}

func frameOf(req kmsg.Request) []byte {
	frame := make([]byte, 4, 64)
	frame = binary.BigEndian.AppendUint16(frame, uint16(req.Key()))
	frame = binary.BigEndian.AppendUint16(frame, uint16(req.GetVersion()))
	frame = append(frame, 0, 0, 0, 1, 0, 4, 'b', 'a', 'r', 'e')
	if req.IsFlexible() {
		frame = append(frame, 0)
	}
	frame = req.AppendTo(frame)
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	return frame
}

// bare is a minimal producer: it writes one frame n times, with at most inflight
// of them unanswered.
func bare(addr string, frame []byte, inflight, n int) error {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer nc.Close()
	free := make(chan struct{}, inflight)
	failed := make(chan error, 1)
	go func() {
		buf := make([]byte, 64<<10)
		r, w := 0, 0
		for range n {
			for w-r < 4 || w-r < 4+int(binary.BigEndian.Uint32(buf[r:])) {
				w = copy(buf, buf[r:w])
				r = 0
				m, err := nc.Read(buf[w:])
				if err != nil {
					failed <- err
					return
				}
				w += m
			}
			size := 4 + int(binary.BigEndian.Uint32(buf[r:]))
			// After head and tags: count, name, count, index, error.
			at := r + 9 + 1 + 2 + 1 + 4
			if code := binary.BigEndian.Uint16(buf[at:]); code != 0 {
				failed <- fmt.Errorf("refused with code %d", code)
				return
			}
			r += size
			<-free
		}
		failed <- nil
	}()
	for range n {
		select {
		case free <- struct{}{}:
		case err := <-failed:
			return err
		}
		if _, err := nc.Write(frame); err != nil {
			return err
		}
	}
	return <-failed
}
