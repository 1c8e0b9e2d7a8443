package server

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/gin-gonic/gin"
	"github.com/rs/cors"
)

// preflightSeconds is how long a browser need not ask again.
const preflightSeconds = 600

// newOrigins makes what tells browsers that pages of some origins may use this server; nil: of none.
func newOrigins(origins []string) (*cors.Cors, error) {
	if len(origins) == 0 {
		return nil, nil
	}
	for _, origin := range origins {
		if origin == "*" || origin == "null" {
			continue
		}
		u, err := url.Parse(origin)
		if err != nil || u.Scheme == "" || u.Host == "" || origin != u.Scheme+"://"+u.Host {
			return nil, fmt.Errorf("server: %q is no origin (write scheme://host or scheme://host:port without a slash behind, or * for all)", origin)
		}
	}
	return cors.New(cors.Options{
		AllowedOrigins:      origins,
		AllowedMethods:      []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete},
		AllowedHeaders:      []string{"*"}, // clients send many of their own
		ExposedHeaders:      []string{requestID, plainRequestID, "Retry-After", "x-should-retry"},
		MaxAge:              preflightSeconds,
		AllowPrivateNetwork: true,
	}), nil
}

// crossOrigin answers the question that browsers ask before a request (a preflight, which never has a key), and marks answers.
func (s *Server) crossOrigin(c *gin.Context) {
	if s.origins == nil {
		return
	}
	s.origins.HandlerFunc(c.Writer, c.Request)
	if c.Request.Method == http.MethodOptions && c.Request.Header.Get("Access-Control-Request-Method") != "" {
		c.Writer.WriteHeaderNow()
		c.Abort()
	}
}
