package otlp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"carronade/internal/otlp/wire"
	"carronade/internal/place"
	"carronade/protocol"
)

// Bounds of a corpus, in bytes.
const (
	mostCorpus  = 256 << 20 // kept of a file
	mostRequest = 64 << 20  // of a request
)

// openCorpus reads recorded requests: lines of JSON, or protobuf, each after its length in four bytes.
func (p *pool) openCorpus(file string, keep bool) error {
	fail := func(err error) error {
		return &protocol.Error{Doing: "read --corpus " + file, Err: err, Hint: "it must have requests as the Collector's file exporter writes them, as lines of JSON or with format: proto, without compression"}
	}
	f, err := place.Open(file)
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<20)
	begin, _ := in.Peek(1)
	read := p.readProto
	if len(begin) == 1 && begin[0] == '{' {
		read, p.weights = readJSON, [wire.Signals]int{}
	} else if len(p.signals()) != 1 {
		return fail(errors.New("requests in protobuf do not say of which signal they are: give one --signal"))
	}
	p.most = 0
	ids := map[string]uint64{}
	size := 0
	for n := 1; ; n++ {
		if size >= mostCorpus {
			_, err := in.Peek(1)
			p.cut = err == nil
			break
		}
		s, b, err := read(in)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = p.addRecorded(s, b, ids, keep)
		}
		if err != nil {
			return fail(fmt.Errorf("request %d: %w", n, err))
		}
		size += len(b)
	}
	if p.most == 0 {
		return fail(errors.New("there are no events in it"))
	}
	return nil
}

// addRecorded adds a recorded request.
func (p *pool) addRecorded(s wire.Signal, b []byte, ids map[string]uint64, keep bool) error {
	events, err := s.Check(b)
	if err != nil || events == 0 {
		return err
	}
	p.most = max(p.most, events)
	p.weights[s]++
	if !keep {
		return nil
	}
	places, latest, err := s.Places(b, ids)
	if latest == 0 {
		p.unstamped++
	}
	if len(ids) >= wire.MostIDs {
		return fmt.Errorf("there are more than %d different ids", wire.MostIDs)
	}
	p.plain += int64(len(b))
	p.bodies = append(p.bodies, &wire.Body{Signal: s, Bytes: b, Places: places, Events: events})
	return err
}

// readJSON reads the next line that is not empty.
func readJSON(in *bufio.Reader) (wire.Signal, []byte, error) {
	for {
		var line []byte
		for more := true; more; {
			part, err := in.ReadSlice('\n')
			line = append(line, part...)
			if len(line) > mostRequest {
				return 0, nil, fmt.Errorf("a line has more than %d bytes", mostRequest)
			}
			more = errors.Is(err, bufio.ErrBufferFull)
			if err != nil && !more && (!errors.Is(err, io.EOF) || len(line) == 0) {
				return 0, nil, err
			}
		}
		if len(line) > 1 {
			return wire.FromJSON(line)
		}
	}
}

// readProto reads the next request in protobuf.
func (p *pool) readProto(in *bufio.Reader) (wire.Signal, []byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(in, length[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = wire.ErrTruncated
		}
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > mostRequest {
		return 0, nil, fmt.Errorf("it has %d bytes", n)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(in, b); err != nil {
		return 0, nil, wire.ErrTruncated
	}
	return p.signals()[0], b, nil
}
