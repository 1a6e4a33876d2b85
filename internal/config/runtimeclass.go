package config

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podstead/podstead/spec"
)

// RuntimeClass is an element of engine.runtimeClasses: the OCI runtime of the pods that have its name as runtimeClassName. It can be set in
// the file only.
type RuntimeClass struct {
	Name    string `json:"name"`
	Runtime string `json:"runtime"` // a name or an absolute path
}

const runtimeClassHint = `write a class as [[engine.runtimeClasses]] with name = "untrusted" and runtime = "crun"`

// checkRuntimeClasses checks the runtime classes of a file, but not whether their OCI runtimes are installed.
func (c *Config) checkRuntimeClasses(file *spec.Decoded) {
	seen := map[string]bool{}
	for i := range c.Engine.RuntimeClasses {
		r := &c.Engine.RuntimeClasses[i]
		bad := func(field *string, err error) {
			switch {
			case err == nil:
			case file.Has(field):
				file.Bad(field, err.Error(), "")
			default:
				file.Bad(r, err.Error(), runtimeClassHint)
			}
		}
		bad(&r.Name, r.checkName(seen))
		bad(&r.Runtime, r.checkRuntime())
	}
}

func (r *RuntimeClass) checkName(seen map[string]bool) error {
	switch {
	case r.Name == "":
		return errors.New("name: Required value")
	case len(validation.IsDNS1123Subdomain(r.Name)) > 0:
		return fmt.Errorf("%q: must consist of lower case letters, digits, '-' and '.', at most 253", r.Name)
	case seen[r.Name]:
		return fmt.Errorf("%q: another class has this name", r.Name)
	}
	seen[r.Name] = true
	return nil
}

func (r *RuntimeClass) checkRuntime() error {
	switch r.Runtime {
	case "":
		return errors.New("runtime: Required value")
	case RuntimeAuto: // it is selected once, as the default
		return fmt.Errorf("%q: must be the name of a program or an absolute path; pods without a class have engine.runtime", r.Runtime)
	}
	return program(r.Runtime)
}

// Classes returns the OCI runtimes of the runtime classes, by the names of the classes.
func (e *Engine) Classes() map[string]string {
	programs := map[string]string{}
	for _, r := range e.RuntimeClasses {
		programs[r.Name] = r.Runtime
	}
	return programs
}
