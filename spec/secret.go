package spec

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
)

// hidden is printed in place of the value of a secret.
const hidden = "[hidden]"

// Sensitive is a value of a secret. It is hidden in every format of package fmt
// and in JSON; only a conversion to string reveals it.
type Sensitive string

// String hides the value from package fmt.
func (Sensitive) String() string { return hidden }

// GoString hides the value from the verb %#v.
func (Sensitive) GoString() string { return hidden }

// MarshalText hides the value from every encoder.
func (Sensitive) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// SecretData maps the keys of an inline secret to its values. Its JSON is the
// sorted list of the keys. A pod that is read from JSON has no values;
// [Pod.WithSecretValues] adds them again.
type SecretData map[string]Sensitive

// MarshalJSON writes the keys only.
func (d SecretData) MarshalJSON() ([]byte, error) {
	return json.Marshal(slices.Sorted(maps.Keys(d)))
}

// UnmarshalJSON accepts a list of keys and discards it.
func (d *SecretData) UnmarshalJSON(text []byte) error {
	*d = nil
	var keys []string
	return json.Unmarshal(text, &keys)
}

// Lost reports whether the values are missing because the pod was read from
// JSON.
func (s *Secret) Lost() bool { return s.Data == nil && s.CredentialName() == "" }

// CredentialName returns the name of the credential of a secret, which is its
// only key; empty: it has none.
func (s *Secret) CredentialName() string {
	if s.Credential == "" && s.CredentialFile != "" {
		return filepath.Base(s.CredentialFile)
	}
	return s.Credential
}

// SecretValues returns the values of all inline secrets by secret and key, to be
// stored separately from the pod; nil if there are none.
func (p *Pod) SecretValues() map[string]map[string]string {
	var all map[string]map[string]string
	for i := range p.Secrets {
		s := &p.Secrets[i]
		if s.Data == nil {
			continue
		}
		if all == nil {
			all = map[string]map[string]string{}
		}
		values := make(map[string]string, len(s.Data))
		for key, value := range s.Data {
			values[key] = string(value)
		}
		all[s.Name] = values
	}
	return all
}

// WithSecretValues returns a copy of a pod that was read from JSON, with the
// values that [Pod.SecretValues] returned. It does not modify the receiver.
func (p *Pod) WithSecretValues(all map[string]map[string]string) *Pod {
	if len(all) == 0 {
		return p
	}
	restored := *p
	restored.Secrets = slices.Clone(p.Secrets)
	for i := range restored.Secrets {
		s := &restored.Secrets[i]
		values, known := all[s.Name]
		if !known {
			continue
		}
		s.Data = make(SecretData, len(values))
		for key, value := range values {
			s.Data[key] = Sensitive(value)
		}
	}
	return &restored
}
