package runtime

import (
	"errors"
	"fmt"
	"slices"

	"github.com/podstead/podstead/runtime/configsource"
	"github.com/podstead/podstead/runtime/image"
	"github.com/podstead/podstead/runtime/image/credentials"
	"github.com/podstead/podstead/spec"
)

// pullSecrets returns the credentials in the secrets that imagePullSecrets names. As with the kubelet, a secret that cannot be used does
// not prevent a pull.
func (r *Runtime) pullSecrets(pod *spec.Pod) image.PullSecrets {
	if len(pod.ImagePullSecrets) == 0 {
		return nil
	}
	return func() (*credentials.Keyring, []string, error) { return readPullSecrets(r.config, pod) }
}

func readPullSecrets(source configsource.Source, pod *spec.Pod) (ring *credentials.Keyring, missing []string, err error) {
	ring = &credentials.Keyring{}
	var errs []error
	for _, ref := range pod.ImagePullSecrets {
		values, err := source.Secret(pod, ref.Name)
		if err == nil {
			if err = ring.AddSecret(withKey(pod, ref.Name, values)); err != nil {
				err = fmt.Errorf("secret %q: %w", ref.Name, err)
			}
		}
		if err != nil {
			missing, errs = append(missing, ref.Name), append(errs, err)
		}
	}
	return ring, missing, errors.Join(errs...)
}

// withKey returns the values of a secret. That of a systemd credential, whose key is the name of the credential, is a config.json.
func withKey(pod *spec.Pod, name string, values map[string][]byte) map[string][]byte {
	i := slices.IndexFunc(pod.Secrets, func(s spec.Secret) bool { return s.Name == name })
	if i < 0 || pod.Secrets[i].CredentialName() == "" || values[credentials.DockerCfg] != nil {
		return values
	}
	return map[string][]byte{credentials.DockerConfigJSON: values[pod.Secrets[i].CredentialName()]}
}
