package standin

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"carronade/units"
)

// A Value is a flag with one value.
type Value[T comparable] struct {
	To     *T
	Parse  func(string) (T, error)
	Format func(T) string
	Kind   string // what help calls the value
}

// Set is pflag.Value's.
func (f *Value[T]) Set(s string) error {
	v, err := f.Parse(s)
	if err == nil {
		*f.To = v
	}
	return err
}

// Type is pflag.Value's.
func (f *Value[T]) Type() string { return f.Kind }

// String is pflag.Value's. The zero value, which means the default or none, is not shown.
func (f *Value[T]) String() string {
	var zero T
	if *f.To == zero {
		return ""
	}
	return f.Format(*f.To)
}

// A List is a flag that may be given several times.
type List[T any] struct {
	To     *[]T
	Parse  func(string) (T, error)
	Format func(T) string
	Kind   string // what help calls one value
}

// Set is pflag.Value's.
func (f *List[T]) Set(s string) error {
	v, err := f.Parse(s)
	if err == nil {
		*f.To = append(*f.To, v)
	}
	return err
}

// Type is pflag.Value's.
func (f *List[T]) Type() string { return f.Kind }

// String is pflag.Value's.
func (f *List[T]) String() string {
	var shown []string
	for _, v := range *f.To {
		shown = append(shown, f.Format(v))
	}
	return strings.Join(shown, ",")
}

// SizeValue is a flag for a number of bytes.
func SizeValue(to *int64) *Value[int64] {
	return &Value[int64]{to, units.ParseSize, units.FlagSize, "size"}
}

// DurationValue is a flag for a duration.
func DurationValue(to *time.Duration) *Value[time.Duration] {
	return &Value[time.Duration]{to, units.ParseDuration, units.FlagDuration, "duration"}
}

// Logf writes one line about an error; nothing if w is nil.
func Logf(w io.Writer, format string, args ...any) {
	if w != nil {
		fmt.Fprintf(w, format+"\n", args...)
	}
}

// TLS is a stand-in's TLS configuration, as paths of PEM files. The zero value is
// no TLS.
type TLS struct {
	Cert, Key string
	ClientCA  string // when set, clients need a certificate signed by it
}

// Bind adds the flags of o to fs. usage is the help of the certificate's flag, and
// says when TLS is spoken.
func (o *TLS) Bind(fs *pflag.FlagSet, usage string) {
	fs.StringVar(&o.Cert, "tls-cert", o.Cert, usage)
	fs.StringVar(&o.Key, "tls-key", o.Key, "the certificate's key, a PEM `FILE`")
	fs.StringVar(&o.ClientCA, "tls-client-ca", o.ClientCA, "require client certificates signed by this PEM `FILE`")
}

// Check reports what is wrong with o without reading its files.
func (o TLS) Check() error {
	switch {
	case (o.Cert == "") != (o.Key == ""):
		return errors.New("TLS needs both a certificate and its key")
	case o.ClientCA != "" && o.Cert == "":
		return errors.New("asking for client certificates needs TLS: a certificate and its key")
	}
	return nil
}

// Config reads the files; nil without TLS.
func (o TLS) Config() (*tls.Config, error) {
	if o.Cert == "" {
		return nil, nil
	}
	cert, err := tls.LoadX509KeyPair(o.Cert, o.Key)
	if err != nil {
		return nil, fmt.Errorf("reading the TLS certificate: %w", err)
	}
	c := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	if o.ClientCA != "" {
		pem, err := os.ReadFile(o.ClientCA)
		if err != nil {
			return nil, fmt.Errorf("reading the client certificates' authority: %w", err)
		}
		c.ClientCAs = x509.NewCertPool()
		if !c.ClientCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s contains no PEM certificate", o.ClientCA)
		}
		c.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return c, nil
}
