package secret

import (
	"slices"
	"strings"
)

// uses are names of settings about the use of a secret, such as those of
// api_key: in apm-server.yml and of a token service in elasticsearch.yml. They
// do not include names that a user may have: below a secret's name, such a name
// is followed by a value to hide.
var uses = []string{
	"enabled", "disabled", "required", "limit", "max", "min", "max_size", "min_size", "size", "length", "min_length", "max_length", "timeout", "interval", "period", "rate_limit",
	"ttl", "max_age", "max_entries", "max_tokens", "max_users", "expires", "expires_in", "expiration", "expiry", "lifetime", "cache", "cache_size", "iterations", "cost", "retries", "max_retries", "port",
	"delete.interval", "delete.timeout", "delete.retention_period", "delete.enabled", "cache.ttl", "cache.max_keys", "cache.hash_algo", "in_fips_mode.enabled",
	"type", "hash_algo", "algorithm", "hashing", "mechanism", "method",
}

// useValue is a harmless value: a switch, a number of few digits, a duration or
// a size, or one of the usual words for kinds and algorithms.
var useValue = lazily(`^(?i:(?:true|false|yes|no|on|off|null|nil|~|-?\d{1,5}(?:\.\d{1,3})?|\d{1,6}(?:ns|us|micros|nanos|ms|s|m|h|d|w|b|kb|mb|gb|k|g|%)|basic|bearer|digest|jwt|hmac|ssha256|sha-?(?:1|256|512)|bcrypt\d{0,2}|pbkdf2(?:_\d+)?|scrypt|argon2(?:id?)?|plain|scram-sha-(?:256|512)|rs256|hs256|es256))?$`)

// plural are names of several secrets: below them are arbitrary names, and
// secrets.
var plural = lazily(`(?i)(?:` + names + `)(?:s|[-_.]?(?:list|map|set|table|store)s?)`)

// isSingle reports whether a name is that of one secret, below which its own
// settings may be.
func isSingle(name string) bool { return !plural().MatchString(name) }

// isAboutUse reports whether a setting below a secret's name, or all in a table, are about
// its use: they stay readable.
func isAboutUse(n node) bool {
	switch n.kind {
	case list:
		return false
	case table:
		return (n.name == "" || isLikelyName(n.name) || slices.Contains(uses, strings.ToLower(n.name))) && len(n.below) > 0 &&
			!slices.ContainsFunc(n.below, func(b node) bool { return !b.isName && !isAboutUse(b) })
	}
	return slices.Contains(uses, strings.ToLower(n.name)) && useValue().MatchString(strings.TrimSpace(n.text))
}
