package container

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"

	containerdoci "github.com/containerd/containerd/v2/pkg/oci"
	"github.com/moby/sys/user"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/podstead/podstead/runtime/oci"
)

// errIDRange is returned for a number that no user or group can have. Like containerd, Podstead has the limit of runc.
var errIDRange = errors.New("out of range")

// setUser sets the user of a container, looked up in /etc/passwd and /etc/group of its root file system. Errors name the user and the
// image. The rules, for users as [oci.UserOf] returns them, are those of WithUser and WithAdditionalGIDs of containerd, which cannot be
// called: their own view of the root file system evaluates templates, which makes the program larger (TestMethodsByName).
func setUser(s *specs.Spec, root fs.FS, u oci.User, image string) error {
	uid, gid, err := findUser(root, u.Primary)
	var member []uint32
	if err == nil && u.Member != "" {
		member, err = memberGroups(root, u.Member)
	}
	if err != nil {
		return fmt.Errorf("find user %q in /etc/passwd and /etc/group of image %q: %w", u.Primary, image, err)
	}
	groups := slices.Concat([]uint32{gid}, member, u.Groups)
	slices.Sort(groups)
	s.Process.User.UID, s.Process.User.GID, s.Process.User.AdditionalGids = uid, gid, slices.Compact(groups)
	return nil
}

// findUser returns the IDs of a user, or of user:group. Each is a name or a number.
func findUser(root fs.FS, text string) (uid, gid uint32, err error) {
	name, group, hasGroup := strings.Cut(text, ":")
	if strings.Contains(group, ":") {
		return 0, 0, fmt.Errorf("invalid USER value %s", text)
	}
	uid, isUID, err := parseID(name)
	if err != nil {
		return 0, 0, fmt.Errorf("invalid USER value %q: uid %w", text, err)
	}
	gid, isGID, err := parseID(group)
	if err != nil {
		return 0, 0, fmt.Errorf("invalid USER value %q: gid %w", text, err)
	}
	if !isUID || !hasGroup {
		found, err := containerdoci.UserFromFS(root, func(u user.User) bool {
			return isUID && u.Uid == int(uid) || !isUID && u.Name == name
		})
		switch {
		case err == nil:
			uid = uint32(found.Uid)
		case !isUID || !isMissing(err):
			return 0, 0, err
		}
		if !hasGroup {
			return uid, uint32(found.Gid), nil
		}
	}
	if !isGID {
		gid, err = containerdoci.GIDFromFS(root, func(g user.Group) bool { return g.Name == group })
	}
	return uid, gid, err
}

// parseID parses a number. It reports whether the text is one.
func parseID(text string) (id uint32, ok bool, err error) {
	n, err := strconv.Atoi(text)
	switch {
	case errors.Is(err, strconv.ErrSyntax):
		return 0, false, nil
	case err != nil || n < 0 || n > math.MaxInt32:
		return 0, false, errIDRange
	}
	return uint32(n), true, nil
}

// memberGroups returns the groups that have a user, which is a name or a number, as a member.
func memberGroups(root fs.FS, name string) (groups []uint32, err error) {
	if uid, err := strconv.Atoi(name); err == nil {
		found, err := containerdoci.UserFromFS(root, func(u user.User) bool { return u.Uid == uid })
		if err != nil {
			if isMissing(err) {
				err = nil
			}
			return nil, err
		}
		name = found.Name
	}
	// The filter collects all groups. GIDFromFS itself returns the first one only.
	_, err = containerdoci.GIDFromFS(root, func(g user.Group) bool {
		if g.Name != name && slices.Contains(g.List, name) {
			groups = append(groups, uint32(g.Gid))
		}
		return false
	})
	if !isMissing(err) {
		return nil, err
	}
	return groups, nil
}

// isMissing reports whether an error means that a user or group does not exist, or the file of users or groups.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, containerdoci.ErrNoUsersFound) || errors.Is(err, containerdoci.ErrNoGroupsFound)
}
