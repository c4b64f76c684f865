package bus

// A NATS is an existing NATS server that is used instead of a Server of this package. Who may do
// what is then up to its administrator, who gives each agent A the permissions
//
//	publish   f.A.up
//	subscribe f.A.down
//
// and the operator
//
//	publish   f.*.down
//	subscribe f.*.up
//
// and nothing else to either, also no _INBOX. Two agents of the same name are not noticed.
type NATS struct {
	URL          string // tls://HOST:PORT or nats://HOST:PORT, several separated by commas; without user and password
	Creds        string // path of a credentials file (a JWT and a seed), or
	NKeySeedFile string // path of a file with an nkey's seed; neither: the server lets everybody in
	CA           string // path of the certificate of an authority; "" is this system's
	Plain        bool   // allows a connection without TLS to another machine
}
