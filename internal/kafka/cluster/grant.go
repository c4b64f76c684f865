package cluster

import (
	"cmp"
	"crypto/x509"
	"errors"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"carronade/internal/advice"
)

// Operations of Kafka's ACLs, as kafka-acls names them.
const (
	aclRead            = "Read"
	aclWrite           = "Write"
	aclCreate          = "Create"
	aclDescribe        = "Describe"
	ACLDescribeConfigs = "DescribeConfigs"
	aclIdempotentWrite = "IdempotentWrite"
)

// ACLCluster is the resource of the cluster, as a flag of kafka-acls.
const ACLCluster = "--cluster"

// ACLTopic is the resource of a topic, likewise.
func ACLTopic(name string) string { return aclNamed("--topic", name) }

// aclNamed is a resource with a name; "" for the name that is Kafka's wildcard, since a right on it
// would be one on every resource of its type.
func aclNamed(flag, name string) string {
	if name == wildcard {
		return ""
	}
	return flag + " " + advice.Quote(name)
}

// wildcard stands for every name in Kafka's ACLs.
const wildcard = "*"

// AskAdmin is what to do if no command can be given.
const AskAdmin = "let an administrator grant it with kafka-acls"

// Grant is the command line with which an administrator gives the run's user rights on a resource; ""
// if the resource is "", or the user's name would stand for every user. With a login, it is the
// administrator's: the user of the run usually may not do it.
func (c *Config) Grant(resource string, operations ...string) string {
	user := cmp.Or(c.Principal(), "NAME")
	if resource == "" || user == wildcard {
		return ""
	}
	login := ""
	if c.Security.Protocol() != Plaintext {
		login = " --command-config FILE"
	}
	return "kafka-acls --bootstrap-server " + advice.Quote(strings.Join(c.Seeds, ",")) + login +
		" --add --allow-principal " + advice.Quote("User:"+user) +
		" --operation " + strings.Join(operations, " --operation ") + " " + resource
}

// Principal is the user that the brokers see: of the login, or the subject of the client's
// certificate as they name it unless they map names (ssl.principal.mapping.rules); "" if it is not
// known here, such as that of a token.
func (c *Config) Principal() string {
	s := c.Security
	switch {
	case s.User != "":
		return s.User
	case s.Mechanism != nil:
		return ""
	case !s.Named():
		return anonymous
	}
	if len(s.TLS.Certificates) > 0 {
		own := s.TLS.Certificates[0]
		leaf := own.Leaf
		if leaf == nil && len(own.Certificate) > 0 {
			leaf, _ = x509.ParseCertificate(own.Certificate[0]) // it was read before
		}
		if leaf != nil {
			return leaf.Subject.String()
		}
	}
	return ""
}

// UserInWords is the run's user in a sentence.
func (c *Config) UserInWords() string {
	s, name := c.Security, c.Principal()
	switch {
	case s.User != "":
		return name
	case s.Mechanism != nil:
		return "the user of the token"
	case !s.Named():
		return "an anonymous client"
	case name == "":
		return "the user of the certificate"
	}
	return "the user of the certificate " + name
}

// TopicRights are the operations on the topic that the run needs.
func (c *Config) TopicRights() (out []string) {
	if !c.OnlyReads() {
		out = append(out, aclWrite)
	}
	if c.Op != OpProduce || c.Verify {
		out = append(out, aclRead)
	}
	return append(out, aclDescribe)
}

// grantFor is the command line that fixes an error of authorization; "" if it is another error, or
// what it is about is not known.
func (c *Config) grantFor(err error) string {
	switch {
	case errors.Is(err, kerr.TopicAuthorizationFailed) && c.Topic != "":
		return c.Grant(ACLTopic(c.Topic), c.TopicRights()...)
	case errors.Is(err, kerr.GroupAuthorizationFailed) && c.Group != "":
		return c.Grant(aclNamed("--group", c.Group), aclRead)
	case errors.Is(err, kerr.GroupAuthorizationFailed) && c.ShareGroup != "":
		return c.Grant(aclNamed("--group", c.ShareGroup), aclRead)
	case errors.Is(err, kerr.TransactionalIDAuthorizationFailed) && c.Txn.ID != "":
		return c.Grant(aclNamed("--transactional-id", c.Txn.ID+"-")+" --resource-pattern-type prefixed", aclWrite, aclDescribe)
	case errors.Is(err, kerr.ClusterAuthorizationFailed) && c.Idempotent:
		return c.Grant(ACLCluster, aclIdempotentWrite)
	}
	return ""
}

// SeeRights are the operations that a run needs to find its topic, or to create it.
func (c *Config) SeeRights() []string {
	if c.Create != nil {
		return []string{aclDescribe, aclCreate}
	}
	return []string{aclDescribe}
}

// MissingRight returns the first operation on the topic that the run needs and that is not among
// those which the broker listed, bits numbered by AclOperation; "" if all are, or the broker lists none.
func (c *Config) MissingRight(ops int32) string {
	const (
		read    = 1 << 3
		write   = 1 << 4
		unknown = -1 << 31
	)
	switch {
	case ops == unknown || ops == 0:
	case !c.OnlyReads() && ops&write == 0:
		return aclWrite
	case (c.Op != OpProduce || c.Verify) && ops&read == 0:
		return aclRead
	}
	return ""
}

// anonymous is the user of a client without a login.
const anonymous = "ANONYMOUS"

// Named reports whether brokers conclude a user from the login or the certificate.
func (s *Security) Named() bool {
	return s.Mechanism != nil || s.TLS != nil && (len(s.TLS.Certificates) > 0 || s.TLS.GetClientCertificate != nil)
}
