package bus

import (
	"errors"

	"github.com/nats-io/nkeys"
)

// keys are an agent's or an operator's: one signs, one opens and seals secrets.
type keys struct {
	sign, seal             nkeys.KeyPair
	publicSign, publicSeal string
}

var errKeys = errors.New("the keys in it are damaged")

// keysOf returns the keys of two seeds.
func keysOf(seed, seal string) (k keys, err error) {
	if k.sign, err = nkeys.FromSeed([]byte(seed)); err != nil {
		return keys{}, errKeys
	}
	if k.seal, err = nkeys.FromCurveSeed([]byte(seal)); err != nil {
		return keys{}, errKeys
	}
	if k.publicSign, err = k.sign.PublicKey(); err != nil || !nkeys.IsValidPublicUserKey(k.publicSign) {
		return keys{}, errKeys
	}
	if k.publicSeal, err = k.seal.PublicKey(); err != nil {
		return keys{}, errKeys
	}
	return k, nil
}

// newSeeds makes two seeds.
func newSeeds() (seed, seal string, err error) {
	sign, err := nkeys.CreateUser()
	if err != nil {
		return "", "", err
	}
	curve, err := nkeys.CreateCurveKeys()
	if err != nil {
		return "", "", err
	}
	a, err := sign.Seed()
	if err != nil {
		return "", "", err
	}
	b, err := curve.Seed()
	return string(a), string(b), err
}

// A sealed secret begins with the public curve key of who sealed it.
const publicKeyLength = 56

// seal encrypts a secret for a public curve key.
func (k keys) sealFor(secret []byte, to string) ([]byte, error) {
	box, err := k.seal.Seal(secret, to)
	if err != nil {
		return nil, err
	}
	return append([]byte(k.publicSeal), box...), nil
}

var errOpen = errors.New("the secret is not sealed for this agent by its operator")

// open decrypts a secret that the owner of the public curve key from sealed; "" is anybody.
func (k keys) open(sealed []byte, from string) ([]byte, error) {
	if len(sealed) < publicKeyLength {
		return nil, errOpen
	}
	sender := string(sealed[:publicKeyLength])
	if from != "" && sender != from || !nkeys.IsValidPublicCurveKey(sender) {
		return nil, errOpen
	}
	secret, err := k.seal.Open(sealed[publicKeyLength:], sender)
	if err != nil {
		return nil, errOpen
	}
	return secret, nil
}
