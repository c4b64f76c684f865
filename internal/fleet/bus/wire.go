package bus

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nkeys"
)

// The first exchange on a connection. After the TLS handshake the client sends a hello and its
// signature, the server one answer; all are frames: four bytes of length, then as many bytes. Then
// messages follow (peer.go), or the connection ends if it was for one request. The signature also covers
// keying material of this TLS connection, so that it cannot be used on another one.

// protocol is the version of the exchange, agreed on in the TLS handshake (ALPN).
const protocol = "carronade-fleet/2"

// Bounds of frames, in bytes. What an unknown peer sends is small.
const (
	mostHello  = 4 << 10
	mostAnswer = 1 << 20
)

// Roles of a client.
const (
	roleAgent    = "agent"
	roleOperator = "operator"
	roleControl  = "control" // an operator's single request
)

// A hello is what a client says first.
type hello struct {
	Role        string   `json:"role"`
	Key         string   `json:"key"`                   // public nkey, which signs
	Seal        string   `json:"seal,omitempty"`        // agent: public curve key
	Name        string   `json:"name,omitempty"`        // agent: the wanted name; "" is the token's
	Token       string   `json:"token,omitempty"`       // agent: to register with
	Incarnation string   `json:"incarnation,omitempty"` // agent: of this process
	Host        string   `json:"host,omitempty"`        // agent: the name if neither Name nor the token has one
	Request     *request `json:"request,omitempty"`     // control
}

// A request of an operator.
type request struct {
	Do      string `json:"do"` // token, revoke, agents, key
	Agent   string `json:"agent,omitempty"`
	Seconds int64  `json:"seconds,omitempty"` // token: valid for
}

// An answer is what the server says to a hello.
type answer struct {
	Refused  string       `json:"refused,omitempty"` // a code of refusals; "" is welcome
	Detail   string       `json:"detail,omitempty"`  // of a refusal: a name, an address, a time
	Name     string       `json:"name,omitempty"`    // agent: that it is registered under
	Operator string       `json:"operator,omitempty"`
	Token    *Join        `json:"token,omitempty"`
	Agents   []Registered `json:"agents,omitempty"`
	Key      string       `json:"key,omitempty"`
}

// refusals are the reasons of a server, by code.
var refusals = map[string]error{
	"wrong-token":   ErrWrongToken,
	"used-token":    ErrUsedToken,
	"expired-token": ErrExpiredToken,
	"no-token":      ErrNoToken,
	"slow":          ErrSlow,
	"name-taken":    ErrNameTaken,
	"wrong-name":    ErrWrongName,
	"name":          ErrName,
	"second":        ErrSecond,
	"full":          ErrFull,
	"no-agent":      ErrNoAgent,
	"disk":          errDisk,
	"broken":        errBroken,
}

var (
	errDisk   = errors.New("the server cannot write into its data folder")
	errBroken = errors.New("the server did not understand the request")
)

// refusal is the answer for an error, which may wrap one of refusals.
func refusal(err error) answer {
	for code, is := range refusals {
		if errors.Is(err, is) {
			a := answer{Refused: code}
			if d, ok := errors.AsType[*detailed](err); ok {
				a.Detail = d.detail
			}
			return a
		}
	}
	return answer{Refused: "broken"}
}

// A detailed is an error with a detail that is sent to the client.
type detailed struct {
	error
	detail string
}

func (d *detailed) Unwrap() error { return d.error }

func (d *detailed) Error() string { return d.error.Error() + ": " + d.detail }

func detail(err error, format string, args ...any) error {
	return &detailed{err, fmt.Sprintf(format, args...)}
}

// err is the reason of a refusal, nil for a welcome.
func (a answer) err() error {
	if a.Refused == "" {
		return nil
	}
	err, ok := refusals[a.Refused]
	if !ok {
		err = fmt.Errorf("the server refused with a reason that this version does not know: %q", clean(a.Refused))
	}
	if a.Detail != "" {
		return detail(err, "%s", clean(a.Detail))
	}
	return err
}

// clean removes from another machine's text what could control a terminal.
func clean(s string) string {
	if len(s) > 200 {
		s = s[:200]
	}
	quoted := []rune(fmt.Sprintf("%q", s))
	return string(quoted[1 : len(quoted)-1])
}

func writeFrame(w io.Writer, data []byte) error {
	_, err := w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...)) // in one TLS record
	return err
}

func readFrame(r io.Reader, most uint32) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > most {
		return nil, fmt.Errorf("a frame of %d bytes, more than %d", n, most)
	}
	data := make([]byte, n)
	_, err := io.ReadFull(r, data)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // after the length
	}
	return data, err
}

// signed is what a client signs: the hello, bound to this connection.
func signed(conn *tls.Conn, data []byte) ([]byte, error) {
	state := conn.ConnectionState()
	key, err := state.ExportKeyingMaterial("EXPORTER-carronade-fleet", nil, 32)
	if err != nil {
		return nil, err
	}
	return append(append([]byte(protocol+"\n"), key...), data...), nil
}

// sayHello is the client's side of the exchange.
func sayHello(ctx context.Context, conn *tls.Conn, h hello, key nkeys.KeyPair) (answer, error) {
	stop := context.AfterFunc(ctx, func() { conn.NetConn().SetDeadline(time.Unix(1, 0)) })
	defer stop()
	data, err := json.Marshal(h)
	if err != nil {
		return answer{}, err
	}
	text, err := signed(conn, data)
	if err != nil {
		return answer{}, err
	}
	signature, err := key.Sign(text)
	if err != nil {
		return answer{}, err
	}
	if err := writeFrame(conn, data); err != nil {
		return answer{}, err
	}
	if err := writeFrame(conn, signature); err != nil {
		return answer{}, err
	}
	var a answer
	data, err = readFrame(conn, mostAnswer)
	if err == nil {
		err = json.Unmarshal(data, &a)
	}
	return a, err
}

// hearHello is the server's side: it returns a hello with a valid signature.
func hearHello(conn *tls.Conn) (hello, error) {
	data, err := readFrame(conn, mostHello)
	if err != nil {
		return hello{}, err
	}
	signature, err := readFrame(conn, mostHello)
	if err != nil {
		return hello{}, err
	}
	var h hello
	if err := json.Unmarshal(data, &h); err != nil {
		return hello{}, errors.New("the first message is not one of ours") // the cause may quote a token
	}
	if !nkeys.IsValidPublicUserKey(h.Key) {
		return hello{}, errors.New("the key is not a user's public nkey")
	}
	key, err := nkeys.FromPublicKey(h.Key)
	if err != nil {
		return hello{}, err
	}
	text, err := signed(conn, data)
	if err != nil {
		return hello{}, err
	}
	if err := key.Verify(text, signature); err != nil {
		return hello{}, errors.New("the signature is not by the key")
	}
	return h, nil
}
