package standin

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"golang.org/x/net/http2/hpack"

	"carronade/internal/conn/framing"
)

// A callAnswer is the answer to every call of gRPC: headers, an empty message and the status OK.
type callAnswer struct{ headers, trailers []byte }

// answerFlow is how many of an answer's bytes count for flow control.
const answerFlow = framing.MessageHead

func newCallAnswer(server string) *callAnswer {
	block := func(fields ...string) []byte {
		var b bytes.Buffer
		e := hpack.NewEncoder(&b)
		for i := 0; i < len(fields); i += 2 {
			// Literals leave the client's table of headers as it is, so that each answer has the same bytes.
			_ = e.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1], Sensitive: true})
		}
		return b.Bytes()
	}
	return &callAnswer{block(":status", "200", "content-type", "application/grpc", "server", server), block("grpc-status", "0")}
}

// appendTo appends the answer on a stream.
func (a *callAnswer) appendTo(b []byte, stream uint32) []byte {
	b = framing.Append(b, framing.Headers, framing.FlagEndHeaders, stream, a.headers...)
	b = framing.Append(b, framing.Data, 0, stream, make([]byte, answerFlow)...)
	return framing.Append(b, framing.Headers, framing.FlagEndHeaders|framing.FlagEndStream, stream, a.trailers...)
}

// A frameSkimmer reads the heads of frames, and skips what is in most of them: since every answer is the same, and
// its own headers need no state, it need not decode those of the client.
type frameSkimmer struct {
	k     *sinkSkimmer
	begun int // bytes of the preface so far

	head     [framing.HeadSize]byte
	had      int // bytes of it so far
	left     int // bytes of the frame's payload to come
	payload  [8]byte
	kept     int      // bytes of it: of pings and window updates
	ends     uint32   // the stream that ends with this frame; 0: none
	received int      // bytes since the connection's last window update
	window   int64    // bytes of answers that the client takes
	held     []uint32 // streams whose answers wait for it
}

const (
	sinkWindow  = 1 << 30 // bytes that a client may send on a connection before an update of the window
	sinkStreams = 1 << 16 // calls that it may have in flight
)

var errPreface = errors.New("it does not begin as HTTP/2 has it")

func newFrameSkimmer(k *sinkSkimmer) *frameSkimmer {
	k.out = framing.Append(k.out, framing.Settings, 0, 0, 0, framing.SettingStreams, 0, sinkStreams>>16, 0, 0, 0, framing.SettingWindow, 0x7f, 0xff, 0xff, 0xff)
	k.out = framing.AppendNumber(k.out, framing.Window, 0, sinkWindow-framing.DefaultWindow)
	return &frameSkimmer{k: k, window: framing.DefaultWindow}
}

// between reports whether no frame is incomplete.
func (f *frameSkimmer) between() bool { return f.had == 0 && f.begun == len(framing.PrefaceBody) }

// skippable is what is left of a payload that is not kept.
func (f *frameSkimmer) skippable() int64 {
	if t := f.head[3]; f.had < framing.HeadSize || t == framing.Ping || t == framing.Window {
		return 0
	}
	return int64(f.left)
}

// take reads frames.
func (f *frameSkimmer) take(p []byte) error {
	for len(p) > 0 {
		var n int
		switch {
		case f.begun < len(framing.PrefaceBody):
			n = min(len(p), len(framing.PrefaceBody)-f.begun)
			if !bytes.Equal(p[:n], framing.PrefaceBody[f.begun:f.begun+n]) {
				return errPreface
			}
			f.begun += n
		case f.had < framing.HeadSize:
			n = copy(f.head[f.had:], p)
			if f.had += n; f.had == framing.HeadSize {
				if err := f.begin(); err != nil {
					return err
				}
			}
		default:
			n = min(len(p), f.left)
			if f.skippable() == 0 {
				f.kept += copy(f.payload[f.kept:], p[:n])
			}
			if err := f.skip(n); err != nil {
				return err
			}
		}
		p = p[n:]
	}
	return nil
}

// begin reads the head of a frame.
func (f *frameSkimmer) begin() error {
	h := &f.head
	f.left, f.kept, f.ends = int(h[0])<<16|int(h[1])<<8|int(h[2]), 0, 0
	stream := binary.BigEndian.Uint32(h[5:]) & math.MaxInt32
	switch size := f.left; h[3] {
	case framing.Data, framing.Headers:
		if h[4]&framing.FlagEndStream != 0 {
			f.ends = stream
		}
		if stream == 0 {
			return errors.New("a frame of no stream")
		}
		if h[3] == framing.Data {
			f.k.counts.bytes.Add(uint64(size))
			if f.received += size; f.received > sinkWindow/2 {
				f.k.out = framing.AppendNumber(f.k.out, framing.Window, 0, uint32(f.received))
				f.received = 0
			}
		}
	case framing.Ping, framing.Window:
		if h[3] == framing.Ping && size != 8 || h[3] == framing.Window && size != 4 {
			return fmt.Errorf("a frame of type %d with %d bytes", h[3], size)
		}
	}
	if f.left > framing.LeastFrame {
		return fmt.Errorf("a frame of %d bytes", f.left)
	}
	return f.skip(0)
}

// skip notes that bytes of the payload have come, and ends a frame that is complete.
func (f *frameSkimmer) skip(n int) error {
	if f.left -= n; f.left > 0 {
		return nil
	}
	f.had = 0
	k, ack := f.k, f.head[4]&framing.FlagAck != 0
	switch f.head[3] {
	case framing.Data, framing.Headers:
		if f.ends > 0 {
			k.counts.requests.Add(1)
			if f.held = append(f.held, f.ends); len(f.held) > sinkStreams {
				return errors.New("it makes calls and takes no answers")
			}
		}
	case framing.Settings:
		if !ack {
			k.out = framing.Append(k.out, framing.Settings, framing.FlagAck, 0)
		}
	case framing.Ping:
		if !ack {
			k.out = framing.Append(k.out, framing.Ping, framing.FlagAck, 0, f.payload[:]...)
		}
	case framing.Window:
		if binary.BigEndian.Uint32(f.head[5:])&math.MaxInt32 == 0 {
			f.window = min(f.window+int64(binary.BigEndian.Uint32(f.payload[:])&math.MaxInt32), math.MaxInt32)
		}
	}
	n = 0
	for ; n < len(f.held) && f.window >= answerFlow; n++ {
		k.out = k.d.calls.appendTo(k.out, f.held[n])
		f.window -= answerFlow
	}
	f.held = append(f.held[:0], f.held[n:]...)
	return nil
}
