package bus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"carronade/internal/advice"
	"carronade/internal/host"
)

// A natsFile is what an operator file has of an existing NATS server: where it is, the paths of
// files with credentials, and the names of the agents, which that server does not know.
type natsFile struct {
	URL          string   `json:"url"`
	Creds        string   `json:"creds,omitempty"`
	NKeySeedFile string   `json:"nkey,omitempty"`
	CA           string   `json:"ca,omitempty"`
	Plain        bool     `json:"plain,omitempty"`
	Agents       []string `json:"agents"`
}

func (f *natsFile) server() NATS {
	return NATS{URL: f.URL, Creds: f.Creds, NKeySeedFile: f.NKeySeedFile, CA: f.CA, Plain: f.Plain}
}

func (f *natsFile) check() error {
	if len(f.Agents) == 0 {
		return errors.New("it names no agents")
	}
	for _, name := range f.Agents {
		if !ValidName(name) {
			return fmt.Errorf("the name %q: %w", clean(name), ErrName)
		}
	}
	_, err := f.server().secure()
	return err
}

// UseNATS connects to an existing NATS server as an operator, to see that it can be used, and
// writes an operator file for it into a folder, in place of an earlier one for a NATS server.
// Errors are of type *advice.Error.
func UseNATS(ctx context.Context, dir string, server NATS, agents []string) error {
	f := &natsFile{URL: server.URL, Plain: server.Plain, Agents: slices.Compact(slices.Sorted(slices.Values(agents)))}
	for _, p := range []struct {
		to   *string
		from string
	}{{&f.Creds, server.Creds}, {&f.NKeySeedFile, server.NKeySeedFile}, {&f.CA, server.CA}} {
		if p.from == "" {
			continue
		}
		path, err := filepath.Abs(p.from)
		if err != nil {
			return &advice.Error{Doing: "find " + p.from, Err: host.Reason(err)}
		}
		*p.to = path
	}
	if err := f.check(); err != nil {
		return &advice.Error{Doing: "use " + clean(server.shown()), Err: err, Hint: "a URL is tls://HOST:PORT or nats://HOST:PORT, and each agent has a name"}
	}
	o, err := ConnectOperatorNATS(ctx, f.server())
	if err != nil {
		return err
	}
	defer o.Close()
	if err := o.nats.listen("use "+clean(server.shown()), "its administrator has to allow the operator to subscribe to "+upSubject("*")); err != nil {
		return err
	}
	path := filepath.Join(dir, OperatorFile)
	if known, err := readFile(path, parseOperatorFile); err == nil && known.NATS == nil {
		return &advice.Error{Doing: "write " + path, Err: errors.New("it has the key of a fleet's own server"), Hint: "give another folder, or remove it if that server is not used any more"}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return &advice.Error{Doing: "make the folder " + dir, Err: host.Reason(err), Hint: "give a folder that this user may write"}
	}
	if err := host.ReplaceFile(path, text(operatorFile{NATS: f})); err != nil {
		return &advice.Error{Doing: "write " + path, Err: host.Reason(err), Hint: "give a folder that this user may write"}
	}
	return nil
}
