package server

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
)

// anyHost among the hosts allows all names.
const anyHost = "*"

// allowedHosts are the names that the Host header may have beside those of this machine. A browser that was tricked into
// taking a foreign name for this machine sends that name (DNS rebinding), so a server for this machine only refuses it.
// check is false where every name is allowed.
func allowedHosts(addr string, more []string) (hosts []string, check bool, err error) {
	name, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, false, fmt.Errorf("server: address %q: %w (write host:port)", addr, err)
	}
	for _, host := range more {
		name := hostName(host)
		if name == "" {
			return nil, false, fmt.Errorf("server: %q is no name of a host (write a name, an address, or %s for all)", host, anyHost)
		}
		hosts = append(hosts, name)
	}
	return hosts, ownName(hostName(name)) && !slices.Contains(hosts, anyHost), nil
}

// hostName is a name or an address without port, brackets, zone, and the dot that ends a full name, in lower case.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	host, _, _ = strings.Cut(host, "%")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// Loopback tells whether only this machine reaches a host that a server listens on.
func Loopback(host string) bool { return ownName(hostName(host)) }

// ownName tells whether a name that hostName made always means the machine that looks it up. An address is no name that
// somebody could point elsewhere, and localhost belongs to nobody (RFC 6761).
func ownName(name string) bool {
	if ip, err := netip.ParseAddr(name); err == nil {
		return ip.Unmap().IsLoopback()
	}
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

// checkHost refuses foreign names, but on routes of load balancers. Browsers always send a name: who sends none is let in.
func (s *Server) checkHost(to map[string]access) gin.HandlerFunc {
	return func(c *gin.Context) {
		if !s.checksHost || c.Request.Host == "" || to[c.FullPath()] == probe {
			return
		}
		if name := hostName(c.Request.Host); !ownName(name) && !slices.Contains(s.hosts, name) {
			s.fail(c, &api.Error{Kind: api.KindHost,
				Message: "This server answers to the names of its own machine only; start it with --hosts NAME to allow the name that you used."})
			c.Abort()
		}
	}
}
