package converter

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/podstead/podstead/spec"
)

// security converts the security settings of a container; nil: it has none.
func (c *converter) security(path []string, s *types.ContainerSpec) *spec.SecurityContext {
	var x spec.SecurityContext
	if s.Privileged {
		x.Privileged = new(true)
	}
	if s.ReadOnly {
		x.ReadOnlyRootFilesystem = new(true)
	}
	if len(s.CapAdd)+len(s.CapDrop) > 0 {
		x.Capabilities = &spec.Capabilities{Add: capabilities(s.CapAdd), Drop: capabilities(s.CapDrop)}
	}
	c.user(append(slices.Clone(path), "user"), s.User, &x)
	for _, option := range s.SecurityOpt {
		c.securityOption(append(slices.Clone(path), "security_opt"), option, &x)
	}
	if x == (spec.SecurityContext{}) {
		return nil
	}
	return &x
}

func capabilities(names []string) []string {
	var list []string
	for _, name := range names {
		list = append(list, strings.TrimPrefix(strings.ToUpper(name), "CAP_"))
	}
	return list
}

// user converts USER[:GROUP]. Names other than root are in the image only.
func (c *converter) user(path []string, text string, x *spec.SecurityContext) {
	if text == "" {
		return
	}
	user, group, hasGroup := strings.Cut(text, ":")
	id := func(name string) *int64 {
		if name == "root" {
			return new(int64(0))
		}
		n, err := strconv.ParseInt(name, 10, 64)
		if err != nil {
			c.lose(path, fmt.Sprintf("%s is a name, and only the image knows its number", quote(name)),
				"write the numbers, such as 1000:1000")
			return nil
		}
		return &n
	}
	if x.RunAsUser = id(user); hasGroup && x.RunAsUser != nil {
		x.RunAsGroup = id(group)
	}
}

func (c *converter) securityOption(path []string, option string, x *spec.SecurityContext) {
	key, value, _ := strings.Cut(strings.Replace(option, "=", ":", 1), ":")
	switch {
	case key == "no-new-privileges" && value != "false":
		x.AllowPrivilegeEscalation = new(false)
	case key == "no-new-privileges":
	case key == "seccomp" && value == "unconfined":
		x.SeccompProfile = &spec.SecurityProfile{Type: "Unconfined"}
	case key == "apparmor" && value == "unconfined":
		x.AppArmorProfile = &spec.SecurityProfile{Type: "Unconfined"}
	case key == "apparmor" && value == "docker-default":
	case key == "apparmor":
		x.AppArmorProfile = &spec.SecurityProfile{Type: "Localhost", LocalhostProfile: &value}
	case key == "label":
		c.drop(path, "containers have no labels of SELinux")
	case key == "seccomp":
		c.lose(path, "the profile of seccomp is not a file of the host",
			"copy it to seccomp/ of the configuration directory, and set seccompProfile in the pod file")
	default:
		c.lose(path, fmt.Sprintf("%s is not supported", quote(option)), "")
	}
}
