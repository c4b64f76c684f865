package bus

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/nats-io/nkeys"

	"carronade/internal/advice"
	"carronade/internal/host"
)

// A Join is the content of a join file: where the server is, how to know it, and a token to
// register with. The file is a secret until the token is used.
type Join struct {
	Address string    `json:"address"`         // HOST:PORT
	Pin     string    `json:"pin"`             // of the certificate: "sha256:" and 64 hexadecimal digits
	Token   string    `json:"token"`           // valid once
	Agent   string    `json:"agent,omitempty"` // the name that the token is for; "" is any
	Expires time.Time `json:"expires"`
}

// mostFile bounds the files that are read, in bytes.
const mostFile = 64 << 10

// ReadJoin reads a join file. Errors are of type *advice.Error.
func ReadJoin(path string) (Join, error) {
	j, err := readFile(path, parseJoin)
	if err != nil {
		return Join{}, &advice.Error{Doing: "read the join file " + path, Err: err, Hint: "`carronade fleet token` makes join files"}
	}
	return j, nil
}

func parseJoin(text []byte) (j Join, err error) {
	if err := parse(text, &j); err != nil {
		return Join{}, err
	}
	if err := checkServer(j.Address, j.Pin); err != nil {
		return Join{}, err
	}
	switch {
	case j.Token == "" || len(j.Token) > 256:
		return Join{}, errors.New("it has no token")
	case j.Agent != "" && !ValidName(j.Agent):
		return Join{}, ErrName
	}
	return j, nil
}

// Write writes a join file that only this user can read. It does not replace a file: that may be
// the only copy of a token which is still valid. Errors are of type *advice.Error.
func (j Join) Write(path string) error {
	err := host.CreateFile(path, text(j))
	switch {
	case errors.Is(err, fs.ErrExist):
		return &advice.Error{Doing: "write the join file " + path, Err: errors.New("the file exists"), Hint: "choose another name, or remove it"}
	case err != nil:
		return &advice.Error{Doing: "write the join file " + path, Err: host.Reason(err), Hint: "choose a folder in which this user can write"}
	}
	return nil
}

// An operatorFile is what an operator needs: a secret, since who has it commands all agents.
type operatorFile struct {
	Address string `json:"address"` // HOST:PORT
	Pin     string `json:"pin"`
	Seed    string `json:"seed"` // of an nkey, to sign
	Seal    string `json:"seal"` // seed of a curve key, to seal secrets

	NATS *natsFile `json:"nats,omitempty"` // an existing NATS server; then there is nothing else
}

func parseOperatorFile(text []byte) (f operatorFile, err error) {
	if err := parse(text, &f); err != nil {
		return operatorFile{}, err
	}
	if f.NATS != nil {
		return f, f.NATS.check()
	}
	if err := checkServer(f.Address, f.Pin); err != nil {
		return operatorFile{}, err
	}
	_, err = f.keys()
	return f, err
}

func (f operatorFile) keys() (keys, error) { return keysOf(f.Seed, f.Seal) }

// An agentFile is what an agent keeps in its folder: its keys, and, once it has registered, the
// server.
type agentFile struct {
	Seed     string `json:"seed"`
	Seal     string `json:"seal"`
	Name     string `json:"name,omitempty"`
	Address  string `json:"address,omitempty"`
	Pin      string `json:"pin,omitempty"`
	Operator string `json:"operator,omitempty"` // the operator's public curve key
}

func parseAgentFile(text []byte) (f agentFile, err error) {
	if err := parse(text, &f); err != nil {
		return agentFile{}, err
	}
	if _, err := keysOf(f.Seed, f.Seal); err != nil {
		return agentFile{}, err
	}
	if f.Address == "" {
		return f, nil
	}
	if err := checkServer(f.Address, f.Pin); err != nil {
		return agentFile{}, err
	}
	if !ValidName(f.Name) || !nkeys.IsValidPublicCurveKey(f.Operator) {
		return agentFile{}, errors.New("the name or the operator's key is damaged")
	}
	return f, nil
}

// readFile reads one of the files above. Its errors have no path.
func readFile[T any](path string, parse func([]byte) (T, error)) (T, error) {
	var zero T
	info, err := os.Stat(path)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > mostFile) {
		err = errors.New("not a file of this kind")
	}
	if err != nil {
		return zero, host.Reason(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return zero, host.Reason(err)
	}
	return parse(data)
}

// parse reads JSON. Its errors do not quote the text, which has secrets.
func parse(text []byte, to any) error {
	err := json.Unmarshal(text, to)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("not JSON at byte %d", syntax.Offset)
	}
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("not JSON of this kind at byte %d", kind.Offset)
	}
	if err != nil {
		return errors.New("a value in it is damaged")
	}
	return nil
}

// text is the content of a file.
func text(of any) []byte {
	data, err := json.MarshalIndent(of, "", "  ")
	if err != nil {
		panic(err) // strings and times only
	}
	return append(data, '\n')
}

// checkServer checks what leads to a server.
func checkServer(address, pin string) error {
	if _, err := splitAddress(address); err != nil {
		return err
	}
	if !pinForm.MatchString(pin) {
		return errors.New(`the pin of the certificate is not "sha256:" and 64 hexadecimal digits`)
	}
	return nil
}

// splitAddress returns the host of HOST:PORT.
func splitAddress(address string) (host string, err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("the address %q is not HOST:PORT", clean(address))
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return "", fmt.Errorf("the address %q has no port number", clean(address))
	}
	return host, nil
}
