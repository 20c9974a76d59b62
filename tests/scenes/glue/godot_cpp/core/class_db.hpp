/* As much of Godot's registration as docs/export.md uses. */
#pragma once

namespace godot {
struct MethodDefinition {};

template <class... Names> MethodDefinition D_METHOD(const char *, Names...) { return {}; }

struct ClassDB {
    template <class Result, class Class, class... Arguments>
    static void bind_method(MethodDefinition, Result (Class::*)(Arguments...)) {}
};
}
