package server

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
	"github.com/atlas-inference/atlas/atlasrt/internal/api/anthropic"
	"github.com/atlas-inference/atlas/atlasrt/internal/api/openai"
	"github.com/atlas-inference/atlas/atlasrt/internal/api/responses"
)

// route is one path and method.
type route struct {
	method, path string
	access       access
	errors       api.Errors // how errors are written; nil: as errorsOf says
	handle       func(*Server, *gin.Context)
}

// access says who may use a route.
type access uint8

const (
	keyed access = iota // who has a key
	open                // everybody
	probe               // everybody, under any name of a host: for load balancers
)

// table is every route that there is. Beside each that answers requests of a dialect is one that shows their prompts. Those of a
// version are there without it, too: clients differ in what they take for the base.
func table(c *Config) []route {
	const get, post, remove = http.MethodGet, http.MethodPost, http.MethodDelete
	chat, text, messages := openai.Chat{Reasoning: c.Reasoning}, openai.Text{}, anthropic.Messages{}
	routes := []route{
		{post, "/v1/chat/completions", keyed, chat, generates(chat)},
		{post, "/v1/chat/completions/render", keyed, chat, renders(chat)},
		{post, "/v1/completions", keyed, text, generates(text)},
		{post, "/v1/completions/render", keyed, text, renders(text)},
		{post, "/v1/messages", keyed, messages, generates(messages)},
		{post, "/v1/messages/render", keyed, messages, renders(messages)},
		{post, "/v1/messages/count_tokens", keyed, anthropic.Count{}, (*Server).countTokens},
		{post, "/v1/responses", keyed, responses.Errors{}, (*Server).respond},
		{post, "/v1/responses/render", keyed, responses.Errors{}, (*Server).renderResponse},
		{post, "/v1/responses/input_tokens", keyed, responses.Errors{}, (*Server).countInput},
		{get, "/v1/responses/:id", keyed, nil, (*Server).showResponse},
		{remove, "/v1/responses/:id", keyed, nil, (*Server).deleteResponse},
		{post, "/v1/responses/:id/cancel", keyed, nil, (*Server).cancelResponse},
		{get, "/v1/responses/:id/input_items", keyed, nil, (*Server).listInput},
		{get, "/v1/models", keyed, nil, (*Server).listModels},
		{get, "/v1/models/*id", keyed, nil, (*Server).showModel},
		{post, "/v1/render", keyed, chat, renders(chat)},
		{post, "/v1/apply-template", keyed, chat, (*Server).applyTemplate},
		{post, "/v1/tokenize", keyed, nil, (*Server).tokenize},
		{post, "/v1/detokenize", keyed, nil, (*Server).detokenize},
	}
	for _, r := range routes {
		r.path = strings.TrimPrefix(r.path, "/v1")
		routes = append(routes, r)
	}
	return append(routes, []route{
		{get, "/health", probe, nil, (*Server).ready},
		{get, "/readyz", probe, nil, (*Server).ready},
		{get, "/ready", probe, nil, (*Server).ready},
		{get, "/livez", probe, nil, (*Server).live},
		{get, "/live", probe, nil, (*Server).live},
		{get, "/metrics", keyed, nil, (*Server).scrape},
		{get, "/version", keyed, nil, (*Server).version},
		{get, "/", open, nil, (*Server).index},
	}...)
}

func (s *Server) routes() *gin.Engine {
	gin.SetMode(gin.ReleaseMode) // else gin prints to stdout
	router := gin.New()
	router.HandleMethodNotAllowed = true
	router.RedirectTrailingSlash = false
	router.ForwardedByClientIP = false
	access := map[string]access{}
	s.errors = map[string]api.Errors{}
	for _, r := range table(&s.config) {
		if access[r.path] = r.access; r.errors != nil {
			s.errors[r.path] = r.errors
		}
	}
	router.Use(s.identify, s.observe, s.recover, s.checkHost(access), s.crossOrigin, s.authorize(access))
	for _, r := range table(&s.config) {
		router.Handle(r.method, r.path, func(c *gin.Context) { r.handle(s, c) })
		if r.method == http.MethodGet {
			router.Handle(http.MethodHead, r.path, func(c *gin.Context) { r.handle(s, c) })
		}
	}
	router.NoRoute(s.notFound)
	router.NoMethod(func(c *gin.Context) {
		s.fail(c, &api.Error{Kind: api.KindMethod,
			Message: "This path does not take that method; the Allow header lists those that it takes."})
	})
	return router
}

// nowhere is a path that no route has.
const nowhere = "/."

// maxPathBytes bounds paths; model names are far shorter.
const maxPathBytes = 1024

// ServeHTTP implements http.Handler. Slashes that repeat or end a path do not matter; paths with dots, or with bytes that
// no path here has, lead nowhere.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	url := *r.URL
	url.Path, url.RawPath = plainPath(r.URL.Path), ""
	r.URL = &url
	s.router.ServeHTTP(w, r)
}

func plainPath(path string) string {
	if len(path) > maxPathBytes || strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return nowhere
	}
	var b strings.Builder
	for segment := range strings.SplitSeq(path, "/") {
		switch segment {
		case "":
		case ".", "..":
			return nowhere
		default:
			b.WriteByte('/')
			b.WriteString(segment)
		}
	}
	if b.Len() == 0 {
		return "/"
	}
	return b.String()
}
