package spec

import (
	"encoding/json"
	"maps"
	"slices"
)

// hidden is what is printed where a secret's value would be.
const hidden = "[hidden]"

// Sensitive is a value of a secret. It prints as nothing that tells it, in any
// format and in JSON; a conversion to string is what reveals it.
type Sensitive string

// String hides the value from package fmt and everything that is built on it.
func (Sensitive) String() string { return hidden }

// GoString hides the value from the verb %#v.
func (Sensitive) GoString() string { return hidden }

// MarshalText hides the value from every encoder.
func (Sensitive) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// SecretData are the values of an inline secret by key. Its JSON is the sorted
// list of the keys: a pod that was read back from JSON has lost the values, and
// gets them from whoever kept them by [Pod.WithSecretValues].
type SecretData map[string]Sensitive

// MarshalJSON writes the keys alone.
func (d SecretData) MarshalJSON() ([]byte, error) {
	return json.Marshal(slices.Sorted(maps.Keys(d)))
}

// UnmarshalJSON reads a list of keys, of which nothing is kept.
func (d *SecretData) UnmarshalJSON(text []byte) error {
	*d = nil
	var keys []string
	return json.Unmarshal(text, &keys)
}

// Lost reports whether the pod was read back from JSON, so that the values that
// this secret had are not here.
func (s *Secret) Lost() bool { return s.Data == nil && s.Credential == "" }

// SecretValues returns the values of all inline secrets, by secret and key, for
// the one place that has to keep them; nil if there are none.
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

// WithSecretValues returns a pod that was read back from JSON with the values
// that [Pod.SecretValues] gave before. The receiver is left as it was.
func (p *Pod) WithSecretValues(all map[string]map[string]string) *Pod {
	if len(all) == 0 {
		return p
	}
	whole := *p
	whole.Secrets = slices.Clone(p.Secrets)
	for i := range whole.Secrets {
		s := &whole.Secrets[i]
		values, known := all[s.Name]
		if !known {
			continue
		}
		s.Data = make(SecretData, len(values))
		for key, value := range values {
			s.Data[key] = Sensitive(value)
		}
	}
	return &whole
}
