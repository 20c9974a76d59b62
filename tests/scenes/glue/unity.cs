// As much of Unity's classes as docs/export.md uses, so that its code compiles and runs without Unity; and a program
// that strikes the first of three bodies, and prints where they are ten frames later.
using System;
using System.Globalization;
using System.Reflection;

namespace UnityEngine {
    public class MonoBehaviour {}
    public class Transform { public Vector3 position; public Quaternion rotation; }
    public static class Time { public const float fixedDeltaTime = 1 / 60.0f; }
    public struct Vector3 {
        public float x, y, z;
        public Vector3(float x, float y, float z) { this.x = x; this.y = y; this.z = z; }
    }
    public struct Quaternion {
        public float x, y, z, w;
        public Quaternion(float x, float y, float z, float w) { this.x = x; this.y = y; this.z = z; this.w = w; }
    }
}

static class Game {
    static void Message(Room room, string name) {
        typeof(Room).GetMethod(name, BindingFlags.Instance | BindingFlags.NonPublic).Invoke(room, null);
    }

    static void Main() {
        var room = new Room { bodies = new UnityEngine.Transform[3] };
        for (int k = 0; k < 3; k++) room.bodies[k] = new UnityEngine.Transform();
        Message(room, "OnEnable");
        room.Strike(0, new UnityEngine.Vector3(1, 2, 3));
        for (int frame = 0; frame < 10; frame++) Message(room, "FixedUpdate");
        foreach (var body in room.bodies) {
            var (p, q) = (body.position, body.rotation);
            var numbers = new[] { p.x, p.y, p.z, q.x, q.y, q.z, q.w };
            Console.WriteLine(string.Join(" ", Array.ConvertAll(numbers, x => x.ToString("R", CultureInfo.InvariantCulture))));
        }
        Message(room, "OnDisable");
    }
}
