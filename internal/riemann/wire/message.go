package wire

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// A Msg is the content of a frame. To the server it has events or a query; from
// the server an ack, an error or the events that a query found.
type Msg struct {
	OK     bool
	HasOK  bool
	Error  string
	Query  string
	Events []Event

	// HasQuery distinguishes an empty query, which is an error, from none.
	HasQuery bool
}

// Field numbers of Msg. Field 1 does not exist; 4 was State, the old form of
// an event.
const (
	fieldOK     = 2
	fieldError  = 3
	fieldQuery  = 5
	fieldEvents = 6

	fieldString = 1 // of Query
)

// Tags of the message's fields, each one byte.
const (
	tagOK    = fieldOK<<3 | byte(protowire.VarintType)
	tagQuery = fieldQuery<<3 | byte(protowire.BytesType)

	// TagEvents is the tag before the length of each event in a message.
	TagEvents = fieldEvents<<3 | byte(protowire.BytesType)
)

func (m *Msg) isQuery() bool { return m.HasQuery || m.Query != "" }

// MsgSize returns the bytes that AppendMsg appends.
func MsgSize(m *Msg) int {
	n := textSize(m.Error)
	if m.HasOK {
		n += 2
	}
	if m.isQuery() {
		n += 1 + protowire.SizeBytes(1+protowire.SizeBytes(len(m.Query)))
	}
	for i := range m.Events {
		n += 1 + protowire.SizeBytes(EventSize(&m.Events[i]))
	}
	return n
}

// AppendMsg appends the message without the length of its frame, as in a
// datagram.
func AppendMsg(dst []byte, m *Msg) []byte {
	if m.HasOK {
		dst = append(dst, tagOK, byte(protowire.EncodeBool(m.OK)))
	}
	dst = appendText(dst, fieldError, m.Error)
	if m.isQuery() {
		dst = protowire.AppendVarint(append(dst, tagQuery), uint64(1+protowire.SizeBytes(len(m.Query))))
		dst = protowire.AppendString(protowire.AppendTag(dst, fieldString, protowire.BytesType), m.Query)
	}
	for i := range m.Events {
		dst = protowire.AppendVarint(append(dst, TagEvents), uint64(EventSize(&m.Events[i])))
		dst = AppendEvent(dst, &m.Events[i])
	}
	return dst
}

// AppendFramed appends the length of the frame and the message, as in a stream.
func AppendFramed(dst []byte, m *Msg) []byte {
	at := len(dst)
	dst = AppendMsg(append(dst, 0, 0, 0, 0), m)
	PutFrame(dst[at:])
	return dst
}
