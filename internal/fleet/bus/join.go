package bus

import (
	"errors"
	"time"
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

// ReadJoin reads a join file.
func ReadJoin(path string) (Join, error) { return Join{}, errors.New("skeleton") }

// Write writes a join file that only this user can read. It does not replace a file: a join file
// may be the only copy of a token that is still valid.
func (j Join) Write(path string) error { return errors.New("skeleton") }
