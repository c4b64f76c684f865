package kafka

import (
	"cmp"
	"crypto/x509"
	"errors"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Operations of Kafka's ACLs, as kafka-acls names them.
const (
	aclRead            = "Read"
	aclWrite           = "Write"
	aclCreate          = "Create"
	aclDescribe        = "Describe"
	aclDescribeConfigs = "DescribeConfigs"
	aclIdempotentWrite = "IdempotentWrite"
)

// Resources of Kafka's ACLs, as flags of kafka-acls.
const aclCluster = "--cluster"

func aclTopic(name string) string { return aclNamed("--topic", name) }

// aclNamed is a resource with a name; "" for the name that is Kafka's wildcard, since a right on it
// would be one on every resource of its type.
func aclNamed(flag, name string) string {
	if name == wildcard {
		return ""
	}
	return flag + " " + quoted(name)
}

// wildcard stands for every name in Kafka's ACLs.
const wildcard = "*"

// askAdmin is what to do if no command can be given.
const askAdmin = "let an administrator grant it with kafka-acls"

// grant is the command line with which an administrator gives the run's user rights on a resource; ""
// if the resource is "", or the user's name would stand for every user. With a login, it is the
// administrator's: the user of the run usually may not do it.
func (c *config) grant(resource string, operations ...string) string {
	user := cmp.Or(c.principal(), "NAME")
	if resource == "" || user == wildcard {
		return ""
	}
	login := ""
	if c.security.protocol() != plaintext {
		login = " --command-config FILE"
	}
	return "kafka-acls --bootstrap-server " + quoted(strings.Join(c.seeds, ",")) + login +
		" --add --allow-principal " + quoted("User:"+user) +
		" --operation " + strings.Join(operations, " --operation ") + " " + resource
}

// principal is the user that the brokers see: of the login, or the subject of the client's
// certificate as they name it unless they map names (ssl.principal.mapping.rules); "" if it is not
// known here, such as that of a token.
func (c *config) principal() string {
	s := c.security
	switch {
	case s.user != "":
		return s.user
	case s.mechanism != nil:
		return ""
	case !s.named():
		return anonymous
	}
	if len(s.tls.Certificates) > 0 {
		own := s.tls.Certificates[0]
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

// userInWords is the run's user in a sentence.
func (c *config) userInWords() string {
	s, name := c.security, c.principal()
	switch {
	case s.user != "":
		return name
	case s.mechanism != nil:
		return "the user of the token"
	case !s.named():
		return "an anonymous client"
	case name == "":
		return "the user of the certificate"
	}
	return "the user of the certificate " + name
}

// topicRights are the operations on the topic that the run needs.
func (c *config) topicRights() (out []string) {
	if !c.onlyReads() {
		out = append(out, aclWrite)
	}
	if c.op != opProduce || c.verify {
		out = append(out, aclRead)
	}
	return append(out, aclDescribe)
}

// grantFor is the command line that fixes an error of authorization; "" if it is another error, or
// what it is about is not known.
func (c *config) grantFor(err error) string {
	switch {
	case errors.Is(err, kerr.TopicAuthorizationFailed) && c.topic != "":
		return c.grant(aclTopic(c.topic), c.topicRights()...)
	case errors.Is(err, kerr.GroupAuthorizationFailed) && c.group != "":
		return c.grant(aclNamed("--group", c.group), aclRead)
	case errors.Is(err, kerr.GroupAuthorizationFailed) && c.shareGroup != "":
		return c.grant(aclNamed("--group", c.shareGroup), aclRead)
	case errors.Is(err, kerr.TransactionalIDAuthorizationFailed) && c.txn.id != "":
		return c.grant(aclNamed("--transactional-id", c.txn.id+"-")+" --resource-pattern-type prefixed", aclWrite, aclDescribe)
	case errors.Is(err, kerr.ClusterAuthorizationFailed) && c.idempotent:
		return c.grant(aclCluster, aclIdempotentWrite)
	}
	return ""
}

// seeRights are the operations that a run needs to find its topic, or to create it.
func (c *config) seeRights() []string {
	if c.create != nil {
		return []string{aclDescribe, aclCreate}
	}
	return []string{aclDescribe}
}

// missingRight returns the first operation on the topic that the run needs and that is not among
// those which the broker listed, bits numbered by AclOperation; "" if all are, or the broker lists none.
func (c *config) missingRight(ops int32) string {
	const (
		read    = 1 << 3
		write   = 1 << 4
		unknown = -1 << 31
	)
	switch {
	case ops == unknown || ops == 0:
	case !c.onlyReads() && ops&write == 0:
		return aclWrite
	case (c.op != opProduce || c.verify) && ops&read == 0:
		return aclRead
	}
	return ""
}
