package bus

import (
	"context"
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"runtime"

	"carronade/internal/advice"
	"carronade/internal/host"
)

// A keyFile is what a node and the programs that use it share, in place of a server's folder: the
// certificate of the node, by which it is known, and the keys of the operator, by which it knows
// who may command it. It is a secret.
type keyFile struct {
	Seed        string `json:"seed"`        // of an nkey, to sign
	Seal        string `json:"seal"`        // seed of a curve key
	Certificate string `json:"certificate"` // with its private key, in PEM
}

func parseKeyFile(text []byte) (f keyFile, err error) {
	if err := parse(text, &f); err != nil {
		return keyFile{}, err
	}
	if _, err := keysOf(f.Seed, f.Seal); err != nil {
		return keyFile{}, err
	}
	if _, err := f.certificate(); err != nil {
		return keyFile{}, errors.New("its certificate is damaged")
	}
	return f, nil
}

func (f keyFile) certificate() (tls.Certificate, error) {
	return tls.X509KeyPair([]byte(f.Certificate), []byte(f.Certificate))
}

// MakeKey makes a key file, with its folder, unless the file is there already. Errors are of type
// *advice.Error.
func MakeKey(path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	failed := func(err error) error {
		return &advice.Error{Doing: "make the key file " + path, Err: host.Reason(err), Hint: "choose a file in a folder in which this user can write"}
	}
	var f keyFile
	var err error
	if f.Seed, f.Seal, err = newSeeds(); err != nil {
		return failed(err)
	}
	pem, err := newCertificate()
	if err != nil {
		return failed(err)
	}
	f.Certificate = string(pem)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return failed(err)
	}
	if err := host.MakeFile(path, text(f)); err != nil {
		return failed(err)
	}
	return nil
}

// openKey reads a key file. It refuses one that others can read.
func openKey(path string) (keyFile, error) {
	doing := "read the key file " + path
	info, err := os.Stat(path)
	if err != nil {
		return keyFile{}, &advice.Error{Doing: doing, Err: host.Reason(err), Hint: "a node makes it; copy it from there"}
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return keyFile{}, &advice.Error{Doing: doing, Err: errors.New("other users can read it"), Hint: "chmod 600 " + path + ", or make a new one if they may have read it"}
	}
	f, err := readFile(path, parseKeyFile)
	if err != nil {
		return keyFile{}, &advice.Error{Doing: doing, Err: err, Hint: "copy it again from a node"}
	}
	return f, nil
}

// ConnectKey connects as the operator of the server at an address, HOST:PORT, with its key file;
// see ServerConfig.Key. Errors are of type *advice.Error.
func ConnectKey(ctx context.Context, address, path string) (*Operator, error) {
	f, err := openKey(path)
	if err != nil {
		return nil, err
	}
	own, err := f.certificate()
	if err != nil {
		return nil, &advice.Error{Doing: "read the key file " + path, Err: errKeys}
	}
	if _, err := splitAddress(address); err != nil {
		return nil, &advice.Error{Doing: "connect to " + address, Err: err, Hint: "an address is HOST:PORT"}
	}
	return connectOperator(ctx, operatorFile{Address: address, Pin: pinOf(own.Certificate[0]), Seed: f.Seed, Seal: f.Seal}, path)
}
